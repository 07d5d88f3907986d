// SPDX-License-Identifier: Apache-2.0
// Turns decisions into the plan that is shown: steps in their order, each with its evidence, and the plan's id. The
// same decisions about the same machine give the same bytes.
#pragma once

#include "model/plan.h"
#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/ladder.h"
#include "plan/selection.h"

namespace vacate {

/// Steps from 1: whole groups, root first, then by depth and pid, trackers last; refusals at the end, by pid.
[[nodiscard]] Plan assemble(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector,
                            const Decisions& decisions, const std::map<pid_t, Rung>& rungs);

/// 16 hex digits over everything in the plan but the id itself: FNV-1a, 64 bits, for it must be the same on every
/// machine and in every version that says the same. An identifier, no protection against forgery.
[[nodiscard]] std::string plan_id(const Plan& plan);

}  // namespace vacate
