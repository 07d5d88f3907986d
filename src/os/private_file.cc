// SPDX-License-Identifier: Apache-2.0
#include "os/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace vacate {
namespace {

std::string shown_path(const std::string& path) { return fmt::format("'{}'", printable(path, 200)); }

/// Nothing, or why the name must not be taken. Between this and the rename somebody could put a link there: the rename
/// replaces the link itself.
Result<void> check_name(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return {};
    return system_error("cannot write " + shown_path(path));
  }
  if (S_ISREG(there.st_mode) && there.st_uid == geteuid()) return {};
  return Error{ErrorCode::refused, shown_path(path) + " exists and is not a regular file of yours: it stays as it is"};
}

bool write_whole(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(descriptor) == 0;
}

Error unreadable(const std::string& path, std::string_view why) {
  return Error{ErrorCode::malformed, fmt::format("cannot read {}: {}", shown_path(path), why)};
}

}  // namespace

Result<void> write_private_file(const std::string& path, std::string_view bytes) {
  if (auto free = check_name(path); !free) return free;
  std::string beside = path.substr(0, path.rfind('/') + 1) + ".vacate-XXXXXX";
  const UniqueFd file(mkostemp(beside.data(), O_CLOEXEC));  // new, ours alone, mode 0600
  if (!file && errno == ENOENT) {
    const auto end = path.rfind('/');
    return Error{ErrorCode::gone, fmt::format("cannot write {}: there is no folder {}", shown_path(path),
                                              shown_path(end == std::string::npos ? "." : path.substr(0, end)))};
  }
  if (!file) return system_error("cannot write beside " + shown_path(path));
  if (!write_whole(file.get(), bytes) || rename(beside.c_str(), path.c_str()) != 0) {
    const Error error = system_error("cannot write " + shown_path(path));
    static_cast<void>(unlink(beside.c_str()));
    return error;
  }
  return {};
}

Result<std::string> read_regular_file(const std::string& path, std::size_t limit) {
  // Without O_NONBLOCK the open of a pipe would wait for a writer.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return unreadable(path, system_error("open").message);
  struct stat there {};
  if (fstat(file.get(), &there) != 0) return unreadable(path, system_error("stat").message);
  if (!S_ISREG(there.st_mode)) return unreadable(path, "it is no regular file");
  std::string text;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t count = read(file.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable(path, system_error("read").message);
    if (count == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(count));
    if (text.size() > limit) return unreadable(path, fmt::format("it has more than {} MiB", limit >> 20U));
  }
}

}  // namespace vacate
