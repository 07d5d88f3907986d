// SPDX-License-Identifier: Apache-2.0
// The options of `vacate wait`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

[[nodiscard]] std::variant<Options, UsageError> parse_wait(const std::vector<std::string>& arguments);
/// With their dashes, for the test of the help text.
[[nodiscard]] std::vector<std::string> wait_option_names();

}  // namespace vacate
