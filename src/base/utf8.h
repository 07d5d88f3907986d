// SPDX-License-Identifier: Apache-2.0
// UTF-8, read strictly: what is no shortest form of a character is none at all. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace vacate {

struct DecodedPoint {
  char32_t point;
  std::size_t length;  ///< in bytes; 0: not valid UTF-8 here
};

/// The code point at the start of `bytes`, which are at least one: no overlong forms, no surrogates, nothing past
/// U+10FFFF.
[[nodiscard]] DecodedPoint decode_utf8(std::string_view bytes) noexcept;

}  // namespace vacate
