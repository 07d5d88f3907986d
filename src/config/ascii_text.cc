// SPDX-License-Identifier: Apache-2.0
#include "config/ascii_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"

namespace vacate {
namespace {

/// A key of many parts nests as deep as it has parts, and the parser's tables end by recursion.
constexpr std::size_t kLongestLine = 4096;
constexpr char kMark = '~';
constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_past_ascii(char c) noexcept { return static_cast<unsigned char>(c) >= 0x80; }

/// What a parser makes a bare mark of, which from_ascii() would read on from.
bool has_escaped_mark(std::string_view line) {
  static constexpr std::array<std::string_view, 2> kEscapes = {"\\u007e", "\\U0000007e"};
  const auto is_same = [](char a, char b) { return a == b || (b == 'e' && a == 'E'); };
  return std::any_of(kEscapes.begin(), kEscapes.end(), [&](std::string_view escape) {
    return std::search(line.begin(), line.end(), escape.begin(), escape.end(), is_same) != line.end();
  });
}

std::optional<std::string> what_is_unfit(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > kLongestLine) return fmt::format("it is longer than {} bytes", kLongestLine);
  for (auto rest = line; !rest.empty();) {
    const auto [point, length] = decode_utf8(rest);
    if (length == 0) return fmt::format("the byte {} is no UTF-8", printable(rest.substr(0, 1)));
    const bool is_control = point < 0x20 || point == 0x7F;
    if (is_control && point != '\t') return fmt::format("the control character {}", printable(rest.substr(0, 1)));
    rest.remove_prefix(length);
  }
  if (has_escaped_mark(line)) return "an escape for ~; write ~ itself";
  return std::nullopt;
}

/// The byte that two digits behind a mark stand for, if to_ascii() can have written them.
std::optional<char> marked_byte(std::string_view digits) {
  if (digits.size() < 2) return std::nullopt;
  const auto high = kDigits.find(digits[0]);
  const auto low = kDigits.find(digits[1]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  const auto byte = static_cast<char>(high * 16 + low);
  return byte == kMark || is_past_ascii(byte) ? std::optional<char>(byte) : std::nullopt;
}

}  // namespace

std::optional<UnfitLine> first_unfit_line(std::string_view text) {
  std::uint32_t number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (auto why = what_is_unfit(line)) return UnfitLine{number, *std::move(why)};
  }
  return std::nullopt;
}

std::string to_ascii(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  for (const char c : text) {
    ascii += c == kMark || is_past_ascii(c) ? kMark : c;
    if (c != kMark && !is_past_ascii(c)) continue;
    ascii += kDigits[static_cast<unsigned char>(c) / 16];
    ascii += kDigits[static_cast<unsigned char>(c) % 16];
  }
  return ascii;
}

std::string from_ascii(std::string_view ascii) {
  std::string text;
  text.reserve(ascii.size());
  while (!ascii.empty()) {
    const auto byte = ascii.front() == kMark ? marked_byte(ascii.substr(1)) : std::nullopt;
    text += byte.value_or(ascii.front());
    ascii.remove_prefix(byte ? 3 : 1);
  }
  return text;
}

}  // namespace vacate
