// SPDX-License-Identifier: Apache-2.0
// Removes what a plan says, and decides nothing: each segment is checked once more right before it goes
// (os/shm_files.h), and is left where it is not what was seen any more.
#pragma once

#include <vector>

#include "execute/action_log.h"
#include "model/shm.h"

namespace vacate {

/// Exactly one result a step, in order. `wake`: readable once the run is to stop (-1: never); what was not reached then
/// is skipped. Each removal goes into `log` first, those of one set together, for they are one action.
[[nodiscard]] std::vector<ShmResult> remove_shm(const ShmPlan& plan, const ShmSnapshot& seen, ActionLog& log, int wake);

/// The twin of a dry run: every step is skipped.
[[nodiscard]] std::vector<ShmResult> record_shm(const ShmPlan& plan);

}  // namespace vacate
