// SPDX-License-Identifier: Apache-2.0
// What `shm clean` will remove: the segments whose disuse is proven, of the families that were asked for. Pure.
#pragma once

#include <vector>

#include "model/shm.h"

namespace vacate {

/// `findings`: one a segment. `sees_all`: whether everybody was seen who could use a file; if not, the plan is a
/// refusal and nothing is removed.
enum class ShmSight { everybody, not_everybody };
[[nodiscard]] ShmPlan plan_shm(const ShmSnapshot& snapshot, const std::vector<ShmFinding>& findings,
                               const ShmRequest& request, ShmSight sight);

/// What came of it as a whole.
[[nodiscard]] ShmCommandVerdict judge_clean(const ShmPlan& plan, const std::vector<ShmResult>& results);

}  // namespace vacate
