// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <array>

namespace vacate {

DecodedPoint decode_utf8(std::string_view bytes) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 && first < 0xF5   ? 4
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xC2 && first < 0xE0 ? 2
                                                             : 0;
  if (length == 0 || bytes.size() < length) return {0, 0};
  char32_t point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {0, 0};
    point = (point << 6U) | (byte(i) & 0x3FU);
  }
  static constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest.at(length) || (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF) return {0, 0};
  return {point, length};
}

}  // namespace vacate
