// SPDX-License-Identifier: Apache-2.0
// Files that a person names on the command line: one written so that nobody else can read it or be hurt by it, one read
// whole. Anything else about files is elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vacate {

/// Writes `path` with mode 0600, all of it or nothing: into a new file beside it that then takes its place. A file that
/// is there is replaced only if it is a regular one of the caller's; a symbolic link is never followed. refused:
/// something else bears the name. io, denied: it could not be written, and nothing is left behind.
[[nodiscard]] Result<void> write_private_file(const std::string& path, std::string_view bytes);

/// The whole of a regular file of at most `limit` bytes. malformed, in one line for people: there is none, it is no
/// regular file, or it is larger.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, std::size_t limit);

}  // namespace vacate
