// SPDX-License-Identifier: Apache-2.0
// The words after `vacate unit`: which of its two commands, about what.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

[[nodiscard]] std::variant<Options, UsageError> parse_unit(const std::vector<std::string>& arguments);
[[nodiscard]] std::vector<std::string> unit_option_names();

}  // namespace vacate
