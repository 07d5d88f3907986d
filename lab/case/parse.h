// SPDX-License-Identifier: Apache-2.0
// From the text of a case file to a Case. Strict: what is not understood is an error with its line, and all errors of a
// file are told at once.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/case/case.h"

namespace lab {

/// The case in `text`; `path` is for messages and the name. malformed: the message has one line
/// `FILE:LINE:COLUMN: what, which, why, what to do` for each error.
[[nodiscard]] vacate::Result<Case> parse_case(std::string_view text, const std::string& path);

/// The case in the file `path`. Errors of the file system too name the path.
[[nodiscard]] vacate::Result<Case> read_case(const std::string& path);

}  // namespace lab
