// SPDX-License-Identifier: Apache-2.0
// Parsing of small values from bytes and making hostile bytes safe to show. Pure: no system calls.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace vacate {

/// The whole of `text` as an unsigned decimal number; nothing on sign, space, overflow or rubbish.
[[nodiscard]] std::optional<std::uint64_t> parse_unsigned(std::string_view text) noexcept;
/// The whole of `text` as an unsigned hexadecimal number without prefix.
[[nodiscard]] std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept;
/// The whole of `text` as a signed decimal number.
[[nodiscard]] std::optional<std::int64_t> parse_signed(std::string_view text) noexcept;

/// "10s", "1.5s", "200ms", "5min", "1h": the durations of the command line. A bare number is refused
/// except "0". malformed otherwise; the message says what is expected.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);
/// "90GiB", "512MiB", "4KiB", "123B".
[[nodiscard]] Result<Bytes> parse_size(std::string_view text);

/// `text` cut at every `separator`; an empty text gives one empty piece.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
/// Without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;
// The pieces are views into what is cut: of a string that ends with the expression nothing would be left.
template <std::same_as<std::string> Text>
std::vector<std::string_view> split(Text&& text, char separator) = delete;
template <std::same_as<std::string> Text>
std::string_view trim(Text&& text) noexcept = delete;

/// One line that no terminal obeys: valid UTF-8; control characters, line ends, bidi controls, zero-width
/// and invalid bytes are written as \xNN or \u{NNNN}. A backslash stays as it is. Cut after `max_bytes` with "...".
[[nodiscard]] std::string printable(std::string_view hostile, std::size_t max_bytes = 4096);

/// Cut in the middle to at most `columns` display columns, "abc...xyz"; `text` must be printable().
[[nodiscard]] std::string elide_middle(std::string_view text, std::size_t columns);
/// Display columns of printable() text (wide East Asian characters count two, combining marks none).
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;

/// The candidate closest to `word` by edit distance, if close enough to be a misspelling.
[[nodiscard]] std::optional<std::string> closest_match(std::string_view word,
                                                       const std::vector<std::string>& candidates);

}  // namespace vacate
