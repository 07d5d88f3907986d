// SPDX-License-Identifier: Apache-2.0
// What a file is, by numbers: never by path, and without asking a file system that may be dead. Plain stat of a
// descriptor on a dead FUSE or NFS never returns (facts.md 3.2), so there is no other way here to ask.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace vacate {

struct FileIdentity {
  std::uint32_t mode = 0;    ///< st_mode; for a link in fd/ that is not followed, the owner bits tell how it was opened
  std::uint64_t device = 0;  ///< st_dev as makedev(3) packs it
  std::uint64_t inode = 0;
  std::uint64_t rdev = 0;  ///< of a character or block device
  double changed = 0;      ///< st_ctime, seconds since the epoch

  [[nodiscard]] bool is_character() const noexcept { return (mode & 0170000U) == 0020000U; }
  [[nodiscard]] bool is_fifo() const noexcept { return (mode & 0170000U) == 0010000U; }
  [[nodiscard]] bool is_socket() const noexcept { return (mode & 0170000U) == 0140000U; }
  /// Of no type that user space is told: files of the kernel's own (io_uring, dma-buf, eventfd).
  [[nodiscard]] bool is_typeless() const noexcept { return (mode & 0170000U) == 0; }
  [[nodiscard]] bool is_directory() const noexcept { return (mode & 0170000U) == 0040000U; }
};

enum class Links { follow, keep };

/// statx(2) of `name` below the directory `dir_fd` with AT_STATX_DONT_SYNC and AT_NO_AUTOMOUNT. Opens nothing.
[[nodiscard]] Result<FileIdentity> read_identity(int dir_fd, const char* name, Links links = Links::follow);
/// The same of an open descriptor.
[[nodiscard]] Result<FileIdentity> read_identity(int fd);
/// st_size, asked in the same way.
[[nodiscard]] Result<std::uint64_t> read_size(int dir_fd, const char* name);

}  // namespace vacate
