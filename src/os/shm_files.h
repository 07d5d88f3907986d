// SPDX-License-Identifier: Apache-2.0
// Files of a tmpfs, seen through a descriptor of its directory: listed without opening one, and unlinked only while the
// kernel itself vouches that nobody has them open. Follows no symbolic link below the directory.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/shm.h"
#include "os/procfs.h"

namespace vacate {

/// One entry of a directory, as statx(2) tells without following links.
struct ShmEntry {
  std::string name;
  std::uint32_t mode = 0;
  ShmIdentity identity;
  std::uint64_t blocks = 0;  ///< of 512 bytes
  uid_t uid = 0;
  bool locked_down = false;  ///< immutable or append-only
  bool mount_point = false;  ///< something is mounted on it: what statx(2) tells is of that, if anything
};

struct ShmListing {
  std::vector<ShmEntry> entries;  ///< by name
  bool complete = true;           ///< false: there are more than are looked at, or the list broke off
};

/// The file system of a directory.
struct ShmFileSystem {
  bool tmpfs = false, huge_pages = false, read_only = false;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;    ///< of the directory
  Reading<Bytes> size, used;  ///< not supported: it has no limit
};

/// Move-only owner of a descriptor of a directory.
class ShmDirectory {
 public:
  /// The device that `path` is on, asked for without opening it: a dead file system does not hold that up.
  [[nodiscard]] static Result<std::uint64_t> device_of(const std::string& path);
  /// `path` itself may be a link (older systems link /dev/shm). gone, denied: as the kernel says. refused: it is not on
  /// `device`; it was not opened then.
  [[nodiscard]] static Result<ShmDirectory> open(const std::string& path, std::optional<std::uint64_t> device = {});
  /// The directory `name` in it, which must not be a link. refused: something is mounted there; it was not opened.
  [[nodiscard]] Result<ShmDirectory> open_below(const std::string& name) const;
  [[nodiscard]] Result<ShmFileSystem> file_system() const;
  [[nodiscard]] ShmListing list() const;
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }

 private:
  explicit ShmDirectory(UniqueFd directory) noexcept : directory_(std::move(directory)) {}
  UniqueFd directory_;
};

/// While it lives, a lease that somebody breaks does not end this process (SIGIO would).
class LeaseBreaksIgnored {
 public:
  LeaseBreaksIgnored() noexcept;
  ~LeaseBreaksIgnored();
  LeaseBreaksIgnored(const LeaseBreaksIgnored&) = delete;
  LeaseBreaksIgnored& operator=(const LeaseBreaksIgnored&) = delete;

 private:
  struct sigaction before_ {};  ///< the disposition that is restored
};

/// `name`: a path of one or two parts below `directory`, which is not owned.
struct ShmFile {
  const ShmDirectory* directory = nullptr;
  std::string name;
  ShmIdentity expected;
};

/// Removes `name`, a path of one or two parts below `directory`, if it is still the regular file `expected` and nobody
/// has it open or mapped, in whatever namespace: the proof is a write lease (fcntl(2), F_SETLEASE), which the kernel
/// gives only then and which makes everybody wait who opens the file from then on. The file is renamed before it is
/// unlinked, so that what is unlinked is that file and never one that took its name meanwhile; where somebody came in
/// between, it gets its name back. What remains of a race is said in docs/shm.md. Needs LeaseBreaksIgnored.
[[nodiscard]] ShmResult unlink_unused(const ShmDirectory& directory, const std::string& name,
                                      const ShmIdentity& expected);

/// The same for files that belong together: the leases of all are taken and all are renamed before the first is
/// unlinked, and where one has to stay all stay. One that is gone already keeps no other. One result a file, in order.
[[nodiscard]] std::vector<ShmResult> unlink_unused_together(const std::vector<ShmFile>& files);

}  // namespace vacate
