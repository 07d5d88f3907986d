// SPDX-License-Identifier: Apache-2.0
// JSON pointers of cases (RFC 6901) with selectors: `KEY=VALUE` in place of an array index picks the element whose KEY
// equals VALUE. Parsing only: evaluation is the runner's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lab {

/// The unescaped reference tokens of `text`; none for "", which is the whole document. malformed: says what is wrong.
[[nodiscard]] vacate::Result<std::vector<std::string>> parse_pointer(std::string_view text);

}  // namespace lab
