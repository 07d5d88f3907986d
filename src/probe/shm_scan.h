// SPDX-License-Identifier: Apache-2.0
// One look at shared memory and everybody who uses it: directories first, then one pass over all processes, whatever
// number of files there is. Matches by device and inode, never by path, so that a tmpfs of the same name in another
// mount namespace is another one. Read only.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/scan_use.h"
#include "model/shm.h"

namespace vacate {

/// Where POSIX shared memory is on Linux.
inline constexpr const char* kShmPath = "/dev/shm";

/// /dev/shm, `more` directories (each of a tmpfs or hugetlbfs), hugetlbfs mounts and System V segments. Without
/// /dev/shm its place is left out. malformed: one of `more` is no such directory.
[[nodiscard]] Result<ShmSnapshot> scan_shm(const std::vector<std::string>& more, ScanMethod method);

/// Fills in who may answer for segments without users: everybody's number in their own pid namespace, and Python's
/// resource trackers. Worth its time only where something may be removed.
void read_keepers(ShmSnapshot& snapshot);

}  // namespace vacate
