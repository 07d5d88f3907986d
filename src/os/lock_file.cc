// SPDX-License-Identifier: Apache-2.0
#include "os/lock_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "model/process.h"
#include "os/expendable.h"
#include "os/trusted_path.h"

namespace vacate {
namespace {

constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLongestCommand = 64;
constexpr char kTaken = 'T';
constexpr int kMostReplacements = 8;  // of the file under a waiter's feet; more is no accident

bool is_lock_name(std::string_view name) noexcept {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return name.size() <= kLongestName && name.size() > 5 && name.ends_with(".lock") && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

Error unfit_to_lock(const std::string& path, std::string_view what) {
  return Error{ErrorCode::refused, fmt::format("{} {}", path, what)};
}

/// `name` in `parent`, a folder of the caller's that nobody else can write to; made where it is missing.
Result<UniqueFd> open_own_folder(const UniqueFd& parent, const char* name, const std::string& path, mode_t mode) {
  if (mkdirat(parent.get(), name, mode) != 0 && errno != EEXIST) return system_error("cannot make " + path);
  UniqueFd folder(openat(parent.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder && (errno == ENOTDIR || errno == ELOOP)) return unfit_to_lock(path, "is no folder");
  struct stat info {};
  if (!folder || fstat(folder.get(), &info) != 0) return system_error(path);
  if (info.st_uid != geteuid()) return unfit_to_lock(path, "belongs to somebody else");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return unfit_to_lock(path, "may be written by others: chmod go-w");
  return folder;
}

/// The folder that a session manager makes for each user, if it is the caller's alone.
Result<UniqueFd> open_runtime_folder(const std::string& path) {
  const auto all = open_trusted_directory("/run/user");
  if (!all) return Error{ErrorCode::unsupported, "no place for a lock: " + all.error().message};
  UniqueFd own(openat(all->get(), std::to_string(geteuid()).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!own || fstat(own.get(), &info) != 0)
    return Error{ErrorCode::unsupported, "no place for a lock: " + system_error(path).message};
  if (info.st_uid != geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error{ErrorCode::unsupported, fmt::format("no place for a lock: {} is not yours alone", path)};
  return own;
}

struct Place {
  UniqueFd folder;
  std::string path;
};

Result<Place> open_place() {
  const bool is_root = geteuid() == 0;
  const std::string parent_path = is_root ? "/run" : fmt::format("/run/user/{}", geteuid());
  auto parent = is_root ? open_trusted_directory(parent_path) : open_runtime_folder(parent_path);
  if (!parent && is_root) return Error{ErrorCode::unsupported, "no place for a lock: " + parent.error().message};
  if (!parent) return parent.error();
  const std::string path = parent_path + "/vacate";
  auto folder = open_own_folder(*parent, "vacate", path, is_root ? 0755 : 0700);
  if (!folder) return folder.error();
  return Place{std::move(*folder), path};
}

/// For its owner alone: whoever may open a file may lock it, for ever.
Result<UniqueFd> open_own_file(const UniqueFd& folder, const std::string& name, const std::string& path) {
  UniqueFd file(openat(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                       S_IRUSR | S_IWUSR));
  if (!file && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) return unfit_to_lock(path, "is no regular file");
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0) return system_error(path);
  if (!S_ISREG(info.st_mode)) return unfit_to_lock(path, "is no regular file");
  if (info.st_uid != geteuid()) return unfit_to_lock(path, "belongs to somebody else");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) return unfit_to_lock(path, "may be opened by others: chmod 600");
  return file;
}

/// In the child: the lock belongs to the open file that it shares with its parent, and stays when the child ends.
int take_and_say(int channel, int shared) {
  while (flock(shared, LOCK_EX) != 0)
    if (errno != EINTR) return 1;
  return write(channel, &kTaken, 1) == 1 ? 0 : 1;
}

}  // namespace

Result<LockFile> LockFile::open(std::string_view name) {
  if (!is_lock_name(name))
    return Error{ErrorCode::malformed, fmt::format("'{}' is no name of a lock", printable(name, kLongestName))};
  auto place = open_place();
  if (!place) return place.error();
  const std::string path = fmt::format("{}/{}", place->path, name);
  auto file = open_own_file(place->folder, std::string(name), path);
  if (!file) return file.error();
  return LockFile(std::string(name), path, std::move(place->folder), std::move(*file));
}

/// A lock on a file that no longer bears the name is one on nothing.
bool LockFile::is_current() const noexcept {
  struct stat mine {};
  struct stat named {};
  return fstat(file_.get(), &mine) == 0 && fstatat(folder_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/// The folder may have gone as well: from the beginning.
Result<void> LockFile::reopen() {
  auto fresh = open(name_);
  if (!fresh) return fresh.error();
  folder_ = std::move(fresh->folder_);
  file_ = std::move(fresh->file_);
  return {};
}

Result<void> LockFile::try_lock(std::string_view command) {
  for (int turn = 0; turn < kMostReplacements && !held_; ++turn) {
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return Error{ErrorCode::busy, path_ + ": somebody else has it"};
      return system_error(path_);
    }
    held_ = is_current();
    if (held_) sign(command);
    if (!held_)
      if (auto again = reopen(); !again) return again;
  }
  return held_ ? Result<void>{} : unfit_to_lock(path_, "is replaced again and again");
}

Result<LockWait> LockFile::lock(std::string_view command, Deadline deadline, int wake) {
  for (int turn = 0; turn < kMostReplacements; ++turn) {
    const auto tried = try_lock(command);
    if (tried) return LockWait::taken;
    if (tried.error().code != ErrorCode::busy) return tried.error();
    auto waited = wait_in_child(deadline, wake);
    const bool taken = waited && *waited == LockWait::taken;
    // Without: the child may have got it in its last moment, so what it shared with us is given up whole.
    held_ = taken && is_current();
    if (!held_)
      if (auto again = reopen(); !again) return again.error();
    if (!taken) return waited;
    if (held_) sign(command);
    if (held_) return LockWait::taken;
  }
  return unfit_to_lock(path_, "is replaced again and again");
}

/// flock(2) cannot be polled for, and an interrupted one needs a handler and a race with it: a child waits instead.
Result<LockWait> LockFile::wait_in_child(Deadline deadline, int wake) const {
  auto child = Expendable::start_with("vacate-lock", file_.get(), take_and_say);
  if (!child) return child.error().within(path_);
  for (;;) {
    std::array<pollfd, 2> ends{pollfd{child->descriptor(), POLLIN, 0}, pollfd{wake, POLLIN, 0}};
    const int ready = poll(ends.data(), ends.size(), deadline.poll_timeout_ms());
    if (ready < 0 && errno != EINTR) return system_error("poll");
    if (ready > 0 && ends[0].revents != 0) break;
    if (ready > 0 && ends[1].revents != 0) return LockWait::woken;
    if (deadline.passed()) return LockWait::timed_out;
  }
  char said = 0;
  const auto count = child->read_some(&said, 1, deadline);
  if (!count) return count.error().within(path_);
  if (*count != 1 || said != kTaken) return Error{ErrorCode::io, path_ + ": waiting for the lock failed"};
  return LockWait::taken;
}

/// Where it cannot be written the lock counts all the same: the label is for people.
void LockFile::sign(std::string_view command) noexcept {
  const std::string line = fmt::format("{} {}\n", getpid(), printable(command, kLongestCommand));
  if (ftruncate(file_.get(), 0) == 0) (void)!pwrite(file_.get(), line.data(), line.size(), 0);
}

std::optional<LockOwner> LockFile::owner() const {
  std::array<char, 256> bytes{};
  const ssize_t count = pread(file_.get(), bytes.data(), bytes.size(), 0);
  if (count <= 0) return std::nullopt;
  const std::string_view line(bytes.data(), static_cast<std::size_t>(count));
  const auto blank = line.find(' ');
  const auto pid = parse_unsigned(line.substr(0, blank));
  if (!pid || *pid == 0 || *pid > kLargestPid || blank == std::string_view::npos) return std::nullopt;
  return LockOwner{static_cast<pid_t>(*pid), printable(trim(line.substr(blank + 1)), kLongestCommand)};
}

}  // namespace vacate
