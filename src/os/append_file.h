// SPDX-License-Identifier: Apache-2.0
// A file of lines that only root writes and that only grows: one write a line, so that two writers at once keep whole
// lines, and a line that a crash or a full disk tore is left behind as a line of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

class AppendFile {
 public:
  /// Opens `path`, or makes it with mode 0600, in a folder of root or the caller that not everybody may write to.
  /// refused: a link, no regular file, somebody else's, another name of another file, or writable by others. io,
  /// denied: as the kernel says (a full disk, a read-only file system).
  [[nodiscard]] static Result<AppendFile> open(const std::string& path);

  /// `line` and a line feed. It is in the file, if perhaps not on the disk yet. `line` has no line feed.
  [[nodiscard]] Result<void> append(std::string_view line);
  /// Until what was appended is on the disk. May take as long as the disk does.
  [[nodiscard]] Result<void> sync();

 private:
  AppendFile(UniqueFd file, std::string path) noexcept : file_(std::move(file)), path_(std::move(path)) {}
  UniqueFd file_;
  std::string path_;
};

/// The lines of such a file, for one who may read it.
struct FileTail {
  std::string text;       ///< from the beginning of a line
  bool beginning = true;  ///< false: the file has more before it
};

/// The last `most` bytes at most of the file at `path`, cut to whole lines. gone: there is none. refused: it, or its
/// folder, could have been written by others than root and the caller; errors else as the kernel says.
[[nodiscard]] Result<FileTail> read_tail(const std::string& path, std::size_t most);

}  // namespace vacate
