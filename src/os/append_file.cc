// SPDX-License-Identifier: Apache-2.0
#include "os/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {
namespace {

std::string shown(const std::string& path) { return printable(path, 256); }

Error unfit_to_append(const std::string& path, std::string_view what) {
  return Error{ErrorCode::refused, fmt::format("{} {}", shown(path), what)};
}

/// While it lives, a file that grows beyond a limit of the caller's (ulimit -f) fails with EFBIG and ends nobody.
class SizeLimitIgnored {
 public:
  SizeLimitIgnored() noexcept {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    static_cast<void>(sigaction(SIGXFSZ, &ignore, &before_));
  }
  ~SizeLimitIgnored() { static_cast<void>(sigaction(SIGXFSZ, &before_, nullptr)); }
  SizeLimitIgnored(const SizeLimitIgnored&) = delete;
  SizeLimitIgnored& operator=(const SizeLimitIgnored&) = delete;

 private:
  struct sigaction before_ {};
};

bool is_trusted_owner(uid_t uid) noexcept { return uid == 0 || uid == geteuid(); }

/// The folder of `path`. A group may write to it (/var/log is such on some systems): what its members could put there
/// is known by its owner, links and names, which are checked on the file itself.
Result<UniqueFd> open_folder(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return Error{ErrorCode::bug, "not absolute: " + path};
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_error(shown(folder));
  struct stat info {};
  if (fstat(directory.get(), &info) != 0) return system_error(shown(folder));
  if (!is_trusted_owner(info.st_uid)) return unfit_to_append(folder, "is not root's");
  if ((info.st_mode & S_IWOTH) != 0) return unfit_to_append(folder, "may be written by everybody");
  return directory;
}

/// Nothing, or why it is no file for this.
Result<void> check_file(int file, const std::string& path) {
  struct stat info {};
  if (fstat(file, &info) != 0) return system_error(shown(path));
  if (!S_ISREG(info.st_mode)) return unfit_to_append(path, "is no regular file");
  if (!is_trusted_owner(info.st_uid)) return unfit_to_append(path, "is not root's");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return unfit_to_append(path, "may be written by others");
  if (info.st_nlink > 1) return unfit_to_append(path, "has another name as well");
  return {};
}

Error why_not_opened(const std::string& path) {
  if (errno == ELOOP) return unfit_to_append(path, "is a symbolic link");
  if (errno == ENXIO || errno == ENODEV || errno == EISDIR) return unfit_to_append(path, "is no regular file");
  return system_error(shown(path));
}

Result<UniqueFd> open_checked(const UniqueFd& folder, const std::string& path, int flags) {
  constexpr int kCareful = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd file(openat(folder.get(), path.c_str() + path.rfind('/') + 1, flags | kCareful, 0600));
  if (!file) return why_not_opened(path);
  if (auto checked = check_file(file.get(), path); !checked) return checked.error();
  return file;
}

/// Did somebody who was ended, or ran out of disk, leave half a line at the end?
bool ends_torn(int file) {
  struct stat info {};
  char last = '\n';
  if (fstat(file, &info) != 0 || info.st_size == 0) return false;
  return pread(file, &last, 1, info.st_size - 1) == 1 && last != '\n';
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::string& path) {
  const auto folder = open_folder(path);
  if (!folder) return folder.error();
  auto file = open_checked(*folder, path, O_RDWR | O_APPEND | O_CREAT);
  if (!file) return file.error();
  static_cast<void>(fsync(folder->get()));  // a new name has to last as well; not every file system knows how
  return AppendFile(std::move(*file), path);
}

Result<void> AppendFile::append(std::string_view line) {
  const SizeLimitIgnored guard;
  std::string bytes = ends_torn(file_.get()) ? "\n" : "";
  bytes.append(line).append("\n");
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(shown(path_));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> AppendFile::sync() {
  while (fdatasync(file_.get()) != 0) {
    if (errno == EINVAL) return {};  // a file system that has nothing to be synchronised
    if (errno != EINTR) return system_error(shown(path_));
  }
  return {};
}

Result<FileTail> read_tail(const std::string& path, std::size_t most) {
  const auto folder = open_folder(path);
  if (!folder) return folder.error();
  const auto file = open_checked(*folder, path, O_RDONLY);
  if (!file) return file.error();
  struct stat info {};
  if (fstat(file->get(), &info) != 0) return system_error(shown(path));
  const auto size = static_cast<std::size_t>(info.st_size);
  const std::size_t start = size > most ? size - most : 0;
  FileTail tail{std::string(size - start, '\0'), start == 0};
  std::size_t filled = 0;
  while (filled < tail.text.size()) {
    const ssize_t count =
        pread(file->get(), tail.text.data() + filled, tail.text.size() - filled, static_cast<off_t>(start + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(shown(path));
    if (count == 0) break;  // it was cut meanwhile
    filled += static_cast<std::size_t>(count);
  }
  tail.text.resize(filled);
  if (!tail.beginning) tail.text.erase(0, tail.text.find('\n') + 1);
  return tail;
}

}  // namespace vacate
