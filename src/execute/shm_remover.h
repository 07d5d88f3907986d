// SPDX-License-Identifier: Apache-2.0
// Removes what a plan says, and decides nothing: each segment is checked once more right before it goes
// (os/shm_files.h), and is left where it is not what was seen any more.
#pragma once

#include <vector>

#include "model/shm.h"

namespace vacate {

/// Exactly one result a step, in order. `wake`: readable once the run is to stop (-1: never); what was not reached then
/// is skipped.
[[nodiscard]] std::vector<ShmResult> remove_shm(const ShmPlan& plan, const ShmSnapshot& seen, int wake);

/// The twin of a dry run: every step is skipped.
[[nodiscard]] std::vector<ShmResult> record_shm(const ShmPlan& plan);

}  // namespace vacate
