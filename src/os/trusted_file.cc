// SPDX-License-Identifier: Apache-2.0
#include "os/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace vacate {
namespace {

std::string path_text(const std::string& path) { return printable(path, 256); }

Error distrust(const std::string& path, std::string_view what) {
  return Error{ErrorCode::refused, fmt::format("{} {}", path_text(path), what)};
}

bool is_owner(uid_t uid, TrustedOwner wanted) noexcept {
  return uid == 0 || (wanted == TrustedOwner::root_or_caller && uid == geteuid());
}

std::string_view owner_words(TrustedOwner wanted) noexcept {
  return wanted == TrustedOwner::root || geteuid() == 0 ? "has to belong to root" : "has to belong to root or to you";
}

bool is_writable_by_others(const struct stat& status) noexcept { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

/// Only a missing name is `gone`: a socket, say, is there and no file to be read.
Error open_error(const std::string& path) {
  if (errno == ENXIO || errno == ENODEV) return distrust(path, "is no regular file");
  return system_error(path_text(path));
}

Result<UniqueFd> open_directory(const std::string& path, TrustedOwner owner) {
  UniqueFd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return open_error(path);
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return system_error(path_text(path));
  if (!is_owner(status.st_uid, owner)) return distrust(path, owner_words(owner));
  if (is_writable_by_others(status) && (status.st_mode & S_ISVTX) == 0)
    return distrust(path, "may be written by others, who could replace what is in it: chmod go-w");
  return directory;
}

Result<void> check_file(int fd, const std::string& path, TrustedOwner owner) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error(path_text(path));
  if (!S_ISREG(status.st_mode)) return distrust(path, "is no regular file");
  if (!is_owner(status.st_uid, owner)) return distrust(path, owner_words(owner));
  if (is_writable_by_others(status)) return distrust(path, "may be written by others: chmod go-w");
  if (status.st_size > static_cast<off_t>(kLargestTrustedFile)) return distrust(path, "is larger than 1 MiB");
  return {};
}

/// It may grow while it is read, hence the second check.
Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path_text(path));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargestTrustedFile) return distrust(path, "is larger than 1 MiB");
  }
}

}  // namespace

Result<std::string> read_trusted_file(const std::string& path, TrustedOwner owner) {
  const auto slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (name.empty() || name == "." || name == ".." || path.find('\0') != std::string::npos)
    return distrust(path, "is no file's name");
  auto directory = open_directory(parent, owner);
  if (!directory && directory.error().code == ErrorCode::gone) return system_error(path_text(path), ENOENT);
  if (!directory) return directory.error();
  // Not following: a link leads to where nothing was checked. Not blocking: it may be a pipe that nobody writes to.
  const UniqueFd file(
      ::openat(directory->get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0 && errno == ELOOP) return distrust(path, "is a symbolic link: name the file itself");
  if (file.get() < 0) return open_error(path);
  if (auto checked = check_file(file.get(), path, owner); !checked) return checked.error();
  return read_all(file.get(), path);
}

}  // namespace vacate
