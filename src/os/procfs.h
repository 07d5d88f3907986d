// SPDX-License-Identifier: Apache-2.0
// Reading of /proc through directory descriptors. A descriptor of /proc/PID stays with the process it was opened for:
// once that is gone every read fails with gone, also when the pid is somebody else's by then. Nothing here reads maps,
// cmdline or environ, which can block for ever (facts.md 3.2): callers that do are expendable children.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/file_identity.h"
#include "os/proc_parse.h"

namespace vacate {

/// An open directory, /proc itself or one below it. Move-only owner of its descriptor.
class ProcDirectory {
 public:
  /// /proc. io, denied: this machine shows none.
  [[nodiscard]] static Result<ProcDirectory> open_root();
  /// The directory `name` below this one. gone: the process is.
  [[nodiscard]] Result<ProcDirectory> open(const char* name) const;
  [[nodiscard]] Result<ProcDirectory> open(pid_t pid) const;
  /// The directory "PID/NAME" in one call; `name` is a short word.
  [[nodiscard]] Result<ProcDirectory> open_below(pid_t pid, std::string_view name) const;

  /// Whole file, cut at `limit` bytes.
  [[nodiscard]] Result<std::string> read(const char* name, std::size_t limit = std::size_t{1} << 20U) const;
  /// A file to read piece by piece.
  [[nodiscard]] Result<UniqueFd> open_file(const char* name) const;
  [[nodiscard]] Result<std::string> read_link(const char* name) const;
  [[nodiscard]] Result<FileIdentity> identity(const char* name, Links links = Links::follow) const {
    return read_identity(directory_.get(), name, links);
  }
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }

  /// Of /proc: the stat of one process in as few calls as can be, for the walk over all of them.
  [[nodiscard]] Result<ProcStat> stat_of(pid_t pid) const;
  /// Of a process directory. malformed: the kernel wrote what proc(5) does not say.
  [[nodiscard]] Result<ProcStat> stat() const;
  [[nodiscard]] Result<ProcStatus> status() const;

 private:
  explicit ProcDirectory(UniqueFd directory) noexcept : directory_(std::move(directory)) {}
  UniqueFd directory_;
};

/// Walks the entries of a directory with one buffer that is used again for the next: the walk over descriptors
/// allocates nothing.
class DirectoryReader {
 public:
  DirectoryReader() : buffer_(std::make_unique<Buffer>()) {}
  /// Walks the directory behind `fd` from its start; `fd` stays the caller's.
  void start(int fd) noexcept;
  /// The same for one that nobody has read from since it was opened.
  void start_new(int fd) noexcept;
  /// The next entry but "." and "..", valid until the next call; nullptr at the end or on an error().
  [[nodiscard]] const char* next() noexcept;
  /// errno that ended the walk early; 0: it was complete.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  using Buffer = std::array<char, 32768>;
  std::unique_ptr<Buffer> buffer_;
  int fd_ = -1;
  int error_ = 0;
  std::size_t at_ = 0, end_ = 0;
};

/// The numbers among the entries of /proc or task/, sorted. An error that cuts the list short is returned.
[[nodiscard]] Result<std::vector<pid_t>> list_numbers(const ProcDirectory& directory, DirectoryReader& reader);

/// Whole file outside /proc, cut at `limit`: for small files of root's only.
[[nodiscard]] Result<std::string> read_file(const char* path, std::size_t limit = std::size_t{1} << 20U);

/// Inode of the pid namespace that vacate's own /proc/self is in; 0 where it cannot be read.
[[nodiscard]] std::uint64_t own_pid_namespace();

/// A thread that still lives beside a leader that has ended (facts.md 3.1): its directory in task/ shows what the
/// leader's no longer does.
struct LiveThread {
  pid_t tid = 0;
  bool all_exiting = false;  ///< every live thread is on its way out
};
/// Nothing: no thread lives, or the process is gone. An error: that could not be told.
[[nodiscard]] Result<std::optional<LiveThread>> find_live_thread(const ProcDirectory& process, pid_t leader);

}  // namespace vacate
