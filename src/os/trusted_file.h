// SPDX-License-Identifier: Apache-2.0
// Reads a file that decides over processes, and only one that nobody else could have written: what is checked is the
// descriptor that is read, never the path a second time.
#pragma once

#include <string>

#include "base/result.h"

namespace vacate {

enum class TrustedOwner {
  root,            ///< root alone
  root_or_caller,  ///< or the effective user
};

inline constexpr std::size_t kLargestTrustedFile = std::size_t{1} << 20U;

/// The whole file. It has to be a regular one, no symbolic link, of the owner, without write permission for group and
/// others, of 1 MiB at most; the directory that it lies in too has to be the owner's and nobody else's to write, unless
/// it is sticky (/tmp), where nobody can replace another's file. gone: there is none (its directory passed the check).
/// refused: which of these does not hold. denied, io: it could not be opened or read. Messages name the path.
[[nodiscard]] Result<std::string> read_trusted_file(const std::string& path, TrustedOwner owner);

}  // namespace vacate
