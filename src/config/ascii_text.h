// SPDX-License-Identifier: Apache-2.0
// A text in ASCII alone and back again, for toml++: it asks of whatever letter comes next whether that is a blank, and
// up to version 3.3 the answer for most letters past ASCII is undefined behaviour. Which letters stand in quotes only a
// parser knows, so it is shown none of them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vacate {

struct UnfitLine {
  std::uint32_t number = 0;  ///< from 1
  std::string why;           ///< one line
};

/// The first line that no grammar makes right: longer than 4096 bytes, with control characters other than tab and the
/// ends of lines, with bytes that are no UTF-8, or with an escape that would be taken for one of to_ascii().
[[nodiscard]] std::optional<UnfitLine> first_unfit_line(std::string_view text);

/// Each byte past ASCII, and ~ itself, as ~ and two digits. Lines stay where they are. `text` has no unfit line.
[[nodiscard]] std::string to_ascii(std::string_view text);

/// What to_ascii() was given; also of a part of what it gave. A ~ that it did not write stays as it is.
[[nodiscard]] std::string from_ascii(std::string_view ascii);

}  // namespace vacate
