// SPDX-License-Identifier: Apache-2.0
#include "os/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace vacate {
namespace {

Result<FileIdentity> ask_for_identity(int dir_fd, const char* name, int flags) {
  struct statx answer {};
  if (statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | flags,
            STATX_TYPE | STATX_MODE | STATX_INO | STATX_CTIME, &answer) != 0)
    return system_error("statx");
  FileIdentity identity;
  identity.mode = answer.stx_mode;
  identity.device = makedev(answer.stx_dev_major, answer.stx_dev_minor);
  identity.inode = answer.stx_ino;
  identity.rdev = makedev(answer.stx_rdev_major, answer.stx_rdev_minor);
  identity.changed = static_cast<double>(answer.stx_ctime.tv_sec) + static_cast<double>(answer.stx_ctime.tv_nsec) / 1e9;
  return identity;
}

}  // namespace

Result<FileIdentity> read_identity(int dir_fd, const char* name, Links links) {
  return ask_for_identity(dir_fd, name, links == Links::keep ? AT_SYMLINK_NOFOLLOW : 0);
}

Result<std::uint64_t> read_size(int dir_fd, const char* name) {
  struct statx answer {};
  if (statx(dir_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_SIZE, &answer) != 0) return system_error("statx");
  return std::uint64_t{answer.stx_size};
}

Result<FileIdentity> read_identity(int fd) { return ask_for_identity(fd, "", AT_EMPTY_PATH); }

}  // namespace vacate
