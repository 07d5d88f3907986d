// SPDX-License-Identifier: Apache-2.0
// Who would make a reset of a GPU fail though nobody is going to end him, and how each lets go (facts.md 2.6, BR-149).
// Advice for people; nothing is done about it. Pure.
#pragma once

#include <vector>

#include "model/holder.h"
#include "model/snapshot.h"

namespace vacate {

/// Holders with the files of GPU `index` open that have device files only or are protected, by pid.
[[nodiscard]] std::vector<ResetBlocker> reset_blockers_of(unsigned index, const Snapshot& snapshot,
                                                          const std::vector<Holder>& holders);

}  // namespace vacate
