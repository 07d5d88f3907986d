// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <cstddef>

namespace vacate {

// Only the last star is ever tried again: what an earlier one could still take, the last can take as well.
bool matches_pattern(std::string_view pattern, std::string_view text) noexcept {
  static constexpr auto kNone = std::string_view::npos;
  std::size_t at = 0;
  std::size_t star = kNone;
  std::size_t retry = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      retry = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[i])) {
      ++at;
      ++i;
    } else if (star != kNone) {
      at = star + 1;
      i = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == kNone;
}

}  // namespace vacate
