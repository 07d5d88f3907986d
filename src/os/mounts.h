// SPDX-License-Identifier: Apache-2.0
// What /proc/PID/mountinfo says of the mounts that a process can reach: the kernel's own table, so that nobody has to
// ask a file system that may be dead. The parser is pure and takes any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vacate {

/// A line of mountinfo (proc(5)).
struct MountLine {
  std::uint64_t id = 0, parent = 0;
  std::uint64_t device = 0;  ///< of the file system, as makedev(3) packs it
  std::string root;          ///< what of the file system is mounted: "/" or a path in it; hostile bytes
  std::string point;         ///< where, as the process sees it; hostile bytes
  std::string type;          ///< "tmpfs", "fuse.sshfs", ...
  bool operator==(const MountLine&) const = default;
};

constexpr std::size_t kLargestMounts = std::size_t{16} << 20U;  ///< bytes of a mountinfo that is read

/// Lines that are not as proc(5) describes them are left out.
[[nodiscard]] std::vector<MountLine> parse_mounts(std::string_view mountinfo);

/// Does a look-up of the point of `mount` end in it? No where another mount lies over it or over a directory on the
/// way. When in doubt no.
[[nodiscard]] bool is_on_top(const MountLine& mount, const std::vector<MountLine>& mounts);

}  // namespace vacate
