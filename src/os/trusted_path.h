// SPDX-License-Identifier: Apache-2.0
// Folders and programs that nobody but root can have made: every folder on the way is root's, writable by no one else,
// and no link. What somebody else could have put there is not read and not run (design.md rule 8).
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

/// The folder at the absolute `path`, opened with O_PATH: for lookups below it, not for listing. gone: it is not there;
/// refused: somebody else could have made it, the message says which part. May block on a dead file system: for
/// expendable children.
[[nodiscard]] Result<UniqueFd> open_trusted_directory(const std::string& path);

/// Is the file at the absolute `path` a program of root's, in a trusted folder? Errors as above.
[[nodiscard]] Result<void> check_trusted_program(const std::string& path);

}  // namespace vacate
