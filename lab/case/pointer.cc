// SPDX-License-Identifier: Apache-2.0
#include "lab/case/pointer.h"

#include <fmt/format.h>

#include "base/text.h"

namespace lab {

vacate::Result<std::vector<std::string>> parse_pointer(std::string_view text) {
  std::vector<std::string> tokens;
  if (text.empty()) return tokens;
  if (text.front() != '/') {
    return vacate::Error{vacate::ErrorCode::malformed,
                         fmt::format("the JSON pointer '{}' does not begin with '/': write '/{}'", text, text)};
  }
  for (const std::string_view part : vacate::split(text.substr(1), '/')) {
    std::string token;
    for (std::size_t n = 0; n < part.size(); ++n) {
      if (part[n] != '~') {
        token += part[n];
        continue;
      }
      const char code = n + 1 < part.size() ? part[++n] : '\0';
      if (code != '0' && code != '1') {
        return vacate::Error{
            vacate::ErrorCode::malformed,
            fmt::format("the JSON pointer '{}' has a '~' alone: write '~0' for '~', '~1' for '/'", text)};
      }
      token += code == '0' ? '~' : '/';
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace lab
