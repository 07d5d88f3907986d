// SPDX-License-Identifier: Apache-2.0
// See files.h.
#include "lab/machine/files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace lab {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

Result<void> make_directories(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) return system_error("making " + path, problem.value());
  return {};
}

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return system_error("making " + path);
  if (chmod(path.c_str(), mode) != 0) return system_error("mode of " + path);
  return {};
}

Result<void> write_file(const std::string& path, std::string_view text, mode_t mode) {
  if (auto made = make_directories(std::filesystem::path(path).parent_path()); !made) return made;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!file || fchmod(file.get(), mode) != 0) return system_error("making " + path);
  while (!text.empty()) {
    const ssize_t n = write(file.get(), text.data(), text.size());
    if (n < 0) return system_error("writing " + path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// Not by a stream: a process that ends between open and read answers ESRCH, and a stream's buffer throws at that.
std::string read_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t n = 0; file && (n = read(file.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(n));
  return text;
}

Result<void> mount_tmpfs(const std::string& path, mode_t mode) {
  if (auto made = make_directories(path); !made) return made;
  const std::string options = fmt::format("mode={:o}", mode);
  if (mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return system_error("tmpfs on " + path);
  }
  return {};
}

Result<void> bind_file(const std::string& source, const std::string& target) {
  if (access(target.c_str(), F_OK) != 0) {
    if (auto made = write_file(target, ""); !made) return made;
  }
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return system_error(fmt::format("showing {} as {}", source, target));
  }
  return {};
}

Result<void> bind_read_only(const std::string& source, const std::string& target) {
  if (auto bound = bind_file(source, target); !bound) return bound;
  // Adds one attribute: a remount would have to repeat those that a user namespace may not take away. Since Linux 5.12.
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  if (mount_setattr(AT_FDCWD, target.c_str(), 0, &attributes, sizeof attributes) != 0) {
    return system_error("read-only " + target);
  }
  return {};
}

Result<void> make_mounts_private() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return system_error("private mounts");
  return {};
}

Result<void> pivot_into(const std::string& root) {
  // The old root ends up below the new one at the same place and is taken off from there (pivot_root(2)).
  if (chdir(root.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ||
      chdir("/") != 0) {
    return system_error("entering the machine's root");
  }
  return {};
}

}  // namespace lab
