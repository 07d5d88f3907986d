// SPDX-License-Identifier: Apache-2.0
// Which processes have to be known in detail besides the holders. Pure.
#pragma once

#include <vector>

#include "model/process.h"

namespace vacate {

/// `holders` and everything that shares a process group or session with one, its descendants, and the ancestors and
/// session leaders of all these. `processes` by pid. Sorted.
[[nodiscard]] std::vector<pid_t> related_processes(const std::vector<Process>& processes,
                                                   const std::vector<pid_t>& holders);

}  // namespace vacate
