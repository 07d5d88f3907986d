// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan belong together: a relative is ended for the sake of a holder, and when no holder of its family
// holds a GPU any more, nothing speaks for its end. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "model/plan.h"
#include "model/snapshot.h"

namespace vacate {

/// For each step, in order, the number of its family: equal for an ancestor and its descendants and for the members of
/// a process group.
[[nodiscard]] std::vector<std::size_t> families_of(const Plan& plan, const Snapshot& seen);

}  // namespace vacate
