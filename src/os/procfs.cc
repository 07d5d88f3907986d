// SPDX-License-Identifier: Apache-2.0
#include "os/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;

/// Reads `fd` to its end. /proc writes its files as they are read: ESRCH half way means that the process ended.
Result<std::string> read_all(int fd, std::size_t limit) {
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() < limit) {
    const ssize_t n = ::read(fd, piece.data(), std::min(piece.size(), limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("read");
    if (n == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  return text;
}

/// The kernel gives the whole of stat to a read that has room for it.
Result<ProcStat> read_stat(int directory, const char* name) {
  const UniqueFd fd(openat(directory, name, O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error(name);
  std::array<char, 4096> text;
  ssize_t n = -1;
  do {
    n = ::read(fd.get(), text.data(), text.size());
  } while (n < 0 && errno == EINTR);
  if (n < 0) return system_error(name);
  auto stat = parse_stat({text.data(), static_cast<std::size_t>(n)});
  if (!stat) return Error{ErrorCode::malformed, "stat: not as proc(5) describes it"};
  return *std::move(stat);
}

/// The pid as a name in /proc, or "PID/NAME", without allocation. A name too long for it is cut, and so leads nowhere.
class PidName {
 public:
  explicit PidName(pid_t pid, std::string_view below = {}) noexcept {
    char* const end = text_.data() + text_.size() - 1;
    char* at = std::to_chars(text_.data(), end, pid).ptr;
    if (!below.empty()) *at++ = '/';
    at = std::copy_n(below.data(), std::min(below.size(), static_cast<std::size_t>(end - at)), at);
    *at = '\0';
  }
  [[nodiscard]] const char* c_str() const noexcept { return text_.data(); }

 private:
  std::array<char, 32> text_;
};

}  // namespace

Result<ProcDirectory> ProcDirectory::open_root() {
  UniqueFd fd(::open("/proc", kDirectoryFlags));
  if (!fd) return system_error("/proc");
  return ProcDirectory(std::move(fd));
}

Result<ProcDirectory> ProcDirectory::open(const char* name) const {
  UniqueFd fd(openat(directory_.get(), name, kDirectoryFlags));
  if (!fd) return system_error(name);
  return ProcDirectory(std::move(fd));
}

Result<ProcDirectory> ProcDirectory::open(pid_t pid) const { return open(PidName(pid).c_str()); }

Result<ProcDirectory> ProcDirectory::open_below(pid_t pid, std::string_view name) const {
  return open(PidName(pid, name).c_str());
}

Result<UniqueFd> ProcDirectory::open_file(const char* name) const {
  UniqueFd fd(openat(directory_.get(), name, O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return system_error(name);
  return fd;
}

Result<std::string> ProcDirectory::read(const char* name, std::size_t limit) const {
  const auto fd = open_file(name);
  if (!fd) return fd.error();
  return read_all(fd->get(), limit);
}

Result<std::string> ProcDirectory::read_link(const char* name) const {
  std::string target(4096, '\0');
  const ssize_t n = readlinkat(directory_.get(), name, target.data(), target.size());
  if (n < 0) return system_error(name);
  target.resize(static_cast<std::size_t>(n));
  return target;
}

Result<ProcStat> ProcDirectory::stat() const { return read_stat(directory_.get(), "stat"); }

Result<ProcStat> ProcDirectory::stat_of(pid_t pid) const {
  return read_stat(directory_.get(), PidName(pid, "stat").c_str());
}

Result<ProcStatus> ProcDirectory::status() const {
  const auto text = read("status", 65536);
  if (!text) return text.error();
  return parse_status_fields(*text);
}

void DirectoryReader::start(int fd) noexcept {
  start_new(fd);
  if (lseek(fd, 0, SEEK_SET) < 0) error_ = errno;
}

void DirectoryReader::start_new(int fd) noexcept {
  fd_ = fd;
  error_ = 0;
  at_ = end_ = 0;
}

const char* DirectoryReader::next() noexcept {
  for (;;) {
    if (error_ != 0) return nullptr;
    if (at_ >= end_) {
      const ssize_t n = read_directory(fd_, buffer_->data(), buffer_->size());
      if (n < 0) error_ = errno;
      if (n <= 0) return nullptr;
      at_ = 0;
      end_ = static_cast<std::size_t>(n);
    }
    const char* record = buffer_->data() + at_;
    std::uint16_t length = 0;
    std::memcpy(&length, record + offsetof(dirent64, d_reclen), sizeof length);
    if (length == 0 || at_ + length > end_) {
      error_ = EIO;
      return nullptr;
    }
    at_ += length;
    const char* name = record + offsetof(dirent64, d_name);
    if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) return name;
  }
}

Result<std::vector<pid_t>> list_numbers(const ProcDirectory& directory, DirectoryReader& reader) {
  std::vector<pid_t> numbers;
  reader.start(directory.descriptor());
  while (const char* name = reader.next()) {
    const auto number = parse_unsigned(name);
    if (number && *number > 0 && *number <= static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max()))
      numbers.push_back(static_cast<pid_t>(*number));
  }
  if (reader.error() != 0) return system_error("list of processes", reader.error());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::string> read_file(const char* path, std::size_t limit) {
  // O_NONBLOCK: where somebody put a FIFO, opening it must not wait for a writer.
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return system_error(path);
  return read_all(fd.get(), limit);
}

std::uint64_t own_pid_namespace() {
  const auto identity = read_identity(AT_FDCWD, "/proc/self/ns/pid");
  return identity ? identity->inode : 0;
}

Result<std::optional<LiveThread>> find_live_thread(const ProcDirectory& process, pid_t leader) {
  using Found = std::optional<LiveThread>;
  DirectoryReader reader;
  const auto tasks = process.open("task");
  const auto tids = tasks ? list_numbers(*tasks, reader) : Result<std::vector<pid_t>>(tasks.error());
  if (!tids) return tids.error().code == ErrorCode::gone ? Result<Found>(std::nullopt) : tids.error();
  Found found;
  std::optional<Error> problem;
  for (const pid_t tid : *tids) {
    if (tid == leader) continue;
    const auto task = tasks->open(tid);
    const auto stat = task ? task->stat() : Result<ProcStat>(task.error());
    if (!stat && stat.error().code != ErrorCode::gone) problem = stat.error();
    if (!stat || stat->state == 'Z' || stat->state == 'X') continue;
    if (!stat->is_exiting()) return Found(LiveThread{tid, false});
    if (!found) found = LiveThread{tid, true};
  }
  if (problem) return *problem;
  return found;
}

}  // namespace vacate
