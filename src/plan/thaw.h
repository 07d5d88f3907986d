// SPDX-License-Identifier: Apache-2.0
// Frozen control groups: who cannot end before its group is thawed, and whether that may be done. A group is thawed as
// a whole, so only one whose members are all ended, and only if it was asked for. Pure.
#pragma once

#include <map>

#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/ladder.h"

namespace vacate {

/// Gives those of `rungs` that are frozen the group to thaw, where everybody in it ends. One that version 1 froze and
/// that is not to be thawed is refused instead of being sent signals that it will not take; the others are killed as
/// they are.
void choose_thaws(const Snapshot& snapshot, const FreeRequest& request, const Kinship& kinship,
                  std::map<pid_t, Rung>& rungs, Decisions& decisions);

}  // namespace vacate
