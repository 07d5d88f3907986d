// SPDX-License-Identifier: Apache-2.0
// Patterns of configuration files: `*` stands for any bytes, slashes too, `?` for one byte. Pure, and never worse than
// pattern times text, whatever the stars.
#pragma once

#include <string_view>

namespace vacate {

/// Does the whole of `text` fit?
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text) noexcept;

}  // namespace vacate
