// SPDX-License-Identifier: Apache-2.0
// Whose segments a resource tracker of Python may answer for: a tracker reads the names from a pipe whose other end all
// its clients have (multiprocessing/resource_tracker.py of Python 3.8 and later). One that no process ended had such a
// pipe to was told of other segments.
#pragma once

#include <set>

#include "model/snapshot.h"

namespace vacate {

/// Processes that `clients` had no pipe or socket pair to, out of those that `before` saw; empty where the pipes of any
/// of the clients are not known, or not who had the other ends.
[[nodiscard]] std::set<pid_t> strangers_to(const Snapshot& before, const std::set<pid_t>& clients);

}  // namespace vacate
