// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"

namespace vacate {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text, int base) noexcept {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

/// Splits "1.5s" into 1.5 and "s"; nothing where the number is missing, negative, not finite or too large to convert.
struct Quantity {
  double number;
  std::string_view unit;
};
std::optional<Quantity> parse_quantity(std::string_view text) noexcept {
  const auto end = text.find_first_not_of("0123456789.");
  const auto digits = text.substr(0, end);
  double number = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || stop != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return Quantity{number, end == std::string_view::npos ? std::string_view{} : text.substr(end)};
}

/// Characters that a terminal or a reader's eye would obey rather than show: controls, line ends, bidi and zero-width.
bool is_treacherous(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C || c == 0x180E ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
         (c >= 0xFFF0 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE0FFF) || (c & 0xFFFEU) == 0xFFFE;
}

bool is_wide(char32_t c) noexcept {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}

bool is_combining(char32_t c) noexcept {
  return (c >= 0x300 && c <= 0x36F) || (c >= 0x483 && c <= 0x489) || (c >= 0x591 && c <= 0x5BD) ||
         (c >= 0x610 && c <= 0x61A) || (c >= 0x64B && c <= 0x65F) || (c >= 0x1AB0 && c <= 0x1AFF) ||
         (c >= 0x1DC0 && c <= 0x1DFF) || (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE0F) ||
         (c >= 0xFE20 && c <= 0xFE2F);
}

std::size_t column_count(char32_t c) noexcept { return is_combining(c) ? 0 : is_wide(c) ? 2 : 1; }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept {
  return parse_whole<std::uint64_t>(text, 10);
}
std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept { return parse_whole<std::uint64_t>(text, 16); }
std::optional<std::int64_t> parse_signed(std::string_view text) noexcept { return parse_whole<std::int64_t>(text, 10); }

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double milliseconds;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{"ms", 1}, {"s", 1e3}, {"min", 6e4}, {"h", 3.6e6}}};
  static constexpr double kLongest = 1e12;  // some thirty years: keeps the arithmetic of deadlines in range
  if (text == "0") return std::chrono::milliseconds(0);
  if (const auto quantity = parse_quantity(text)) {
    for (const auto& unit : kUnits) {
      if (quantity->unit != unit.name) continue;
      const double milliseconds = quantity->number * unit.milliseconds;
      if (milliseconds <= kLongest) return std::chrono::milliseconds(std::llround(milliseconds));
    }
  }
  return Error{ErrorCode::malformed,
               fmt::format("'{}' is not a duration; write it like 10s, 5min or 1h", printable(text, 64))};
}

Result<Bytes> parse_size(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 5> kUnits = {
      {{"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}}};
  static constexpr double kLargest = 1e18;
  if (const auto quantity = parse_quantity(text)) {
    for (const auto& unit : kUnits) {
      if (quantity->unit != unit.name) continue;
      const double bytes = quantity->number * unit.bytes;
      if (bytes <= kLargest) return Bytes{static_cast<std::uint64_t>(std::llround(bytes))};
    }
  }
  return Error{ErrorCode::malformed,
               fmt::format("'{}' is not a size; write it like 90GiB or 512MiB", printable(text, 64))};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const auto at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) noexcept {
  static constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string printable(std::string_view hostile, std::size_t max_bytes) {
  std::string safe;
  while (!hostile.empty()) {
    const auto [point, length] = decode_utf8(hostile);
    std::string piece;
    if (length == 0) {
      piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(hostile.front()));
    } else if (is_treacherous(point)) {
      piece = point < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(point))
                           : fmt::format("\\u{{{:04x}}}", static_cast<unsigned>(point));
    } else {
      piece = std::string(hostile.substr(0, length));
    }
    if (safe.size() + piece.size() > max_bytes) return safe + "...";
    safe += piece;
    hostile.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

std::size_t display_width(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [point, length] = decode_utf8(text);
    columns += length == 0 ? 1 : column_count(point);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return columns;
}

std::string elide_middle(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 3) return std::string(columns, '.');
  std::vector<std::pair<std::string_view, std::size_t>> glyphs;  // each code point with its width
  while (!text.empty()) {
    const auto [point, length] = decode_utf8(text);
    const std::size_t bytes = std::max<std::size_t>(length, 1);
    glyphs.emplace_back(text.substr(0, bytes), length == 0 ? 1 : column_count(point));
    text.remove_prefix(bytes);
  }
  const std::size_t head_columns = (columns - 3 + 1) / 2;
  const std::size_t tail_columns = columns - 3 - head_columns;
  std::string head;
  std::string tail;
  std::size_t used = 0;
  for (auto glyph = glyphs.begin(); glyph != glyphs.end() && used + glyph->second <= head_columns;
       used += (glyph++)->second)
    head += glyph->first;
  used = 0;
  for (auto glyph = glyphs.rbegin(); glyph != glyphs.rend() && used + glyph->second <= tail_columns;
       used += (glyph++)->second)
    tail.insert(0, glyph->first);
  return head + "..." + tail;
}

std::optional<std::string> closest_match(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = word.size() / 3 + 2;  // more changes than that is another word, not a slip
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace vacate
