// SPDX-License-Identifier: Apache-2.0
// The control groups that keep candidates frozen, and who else is in them. Facts only.
#pragma once

#include <vector>

#include "model/snapshot.h"
#include "os/procfs.h"

namespace vacate {

/// Of those of `processes` whose condition is frozen; by (path, freezer).
[[nodiscard]] std::vector<FrozenGroup> read_frozen_groups(const ProcDirectory& root,
                                                          const std::vector<Process>& processes);

}  // namespace vacate
