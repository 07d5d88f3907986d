// SPDX-License-Identifier: Apache-2.0
// What the kernel tabulates about locks and System V shared memory. The parsers are pure and take any bytes.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/shm.h"

namespace vacate {

/// A line of /proc/locks: a flock, a POSIX or open-file-description lock, or a lease, held or waited for.
struct FileLock {
  pid_t pid = 0;  ///< 0: of an open file description, or of somebody who cannot be named here
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileLock&) const = default;
};
/// Nothing on a line that is not as proc(5) describes it.
[[nodiscard]] std::optional<FileLock> parse_lock(std::string_view line);

struct LockTable {
  std::vector<FileLock> locks;
  bool complete = true;  ///< false: a line was not understood, or there are too many
};
[[nodiscard]] LockTable parse_locks(std::string_view text);

/// A line of /proc/sysvipc/shm. Pids are 0 where they are not visible from here (4.17).
struct SysvSegment {
  int id = -1;
  std::uint32_t mode = 0;  ///< permissions, and 01000: already marked for removal
  std::uint64_t size = 0;
  pid_t creator = 0, last = 0;
  std::uint64_t attached = 0;
  uid_t uid = 0;
  std::int64_t attached_at = 0, detached_at = 0, changed_at = 0;  ///< seconds since the epoch, 0: never
  std::uint64_t resident = 0;
  bool operator==(const SysvSegment&) const = default;
};
[[nodiscard]] std::optional<SysvSegment> parse_sysv_segment(std::string_view line);
[[nodiscard]] std::vector<SysvSegment> parse_sysv_segments(std::string_view text);

/// Marks segment `expected` for removal if it is still the one that was seen and nobody has attached it. The kernel
/// keeps a marked segment for as long as somebody has it attached, so that a late attachment loses nothing but the id.
[[nodiscard]] ShmResult remove_sysv_unused(const ShmSegment& expected);

}  // namespace vacate
