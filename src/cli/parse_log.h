// SPDX-License-Identifier: Apache-2.0
// The command line of `vacate log`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

/// `arguments` without the program's name and "log".
[[nodiscard]] std::variant<Options, UsageError> parse_log(const std::vector<std::string>& arguments);
/// Long names of its options.
[[nodiscard]] std::vector<std::string> log_option_names();

}  // namespace vacate
