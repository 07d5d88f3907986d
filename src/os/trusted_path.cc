// SPDX-License-Identifier: Apache-2.0
#include "os/trusted_path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"

namespace vacate {
namespace {

constexpr int kLookUp = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

/// Of an O_PATH descriptor. A sticky folder for everybody is no exception: anybody can make files there.
Result<struct stat> stat_of_roots(const UniqueFd& fd, const std::string& path) {
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return system_error(path);
  if (info.st_uid != 0 || (info.st_mode & kOthersWrite) != 0)
    return Error{ErrorCode::refused, path + ": others than root can write to it"};
  return info;
}

}  // namespace

Result<UniqueFd> open_trusted_directory(const std::string& path) {
  if (path.empty() || path.front() != '/') return Error{ErrorCode::bug, "not absolute: " + path};
  UniqueFd folder(open("/", kLookUp | O_DIRECTORY));
  if (auto root = stat_of_roots(folder, "/"); !root) return root.error();
  std::string so_far;
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    const std::string name(part);
    so_far += "/" + name;
    UniqueFd next(openat(folder.get(), name.c_str(), kLookUp));
    const auto info = stat_of_roots(next, so_far);
    if (!info) return info.error();
    if (!S_ISDIR(info->st_mode)) return Error{ErrorCode::refused, so_far + ": no folder"};
    folder = std::move(next);
  }
  return folder;
}

Result<void> check_trusted_program(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return Error{ErrorCode::bug, "not absolute: " + path};
  const auto folder = open_trusted_directory(path.substr(0, slash + 1));
  if (!folder) return folder.error();
  const UniqueFd file(openat(folder->get(), path.c_str() + slash + 1, kLookUp));
  const auto info = stat_of_roots(file, path);
  if (!info) return info.error();
  if (!S_ISREG(info->st_mode) || (info->st_mode & S_IXUSR) == 0)
    return Error{ErrorCode::refused, path + ": no program"};
  return {};
}

}  // namespace vacate
