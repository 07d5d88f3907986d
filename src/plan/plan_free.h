// SPDX-License-Identifier: Apache-2.0
// From holders to a plan: selection, protection, closure, ladder, refusals. Pure and deterministic; what it does not
// put into the plan cannot be signalled.
#pragma once

#include <string>

#include "base/result.h"
#include "model/holder.h"
#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

/// What `free` would do. malformed: a selector that names nothing there is (an unknown GPU index, a pid that does not
/// exist or has another start time, a pid that holds no GPU), in one line for people.
[[nodiscard]] Result<Plan> plan_free(const Snapshot& snapshot, const Attribution& attribution,
                                     const FreeRequest& request);

/// A later round: only processes that belong to what `first` showed (members of its groups, descendants, co-holders of
/// its clients) are added; others are not. Steps are numbered on from `first`.
[[nodiscard]] Plan plan_next_round(const Snapshot& snapshot, const Attribution& attribution, const FreeRequest& request,
                                   const Plan& first, const Snapshot& first_snapshot,
                                   const Attribution& first_attribution);

}  // namespace vacate
