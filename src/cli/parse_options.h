// SPDX-License-Identifier: Apache-2.0
// From argv to Options. Reads no environment, prints nothing, ends nothing.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

/// `arguments` without the program's name.
[[nodiscard]] std::variant<Options, UsageError> parse_options(const std::vector<std::string>& arguments);

/// Long names of every option of `command` ("status", "free"), for the test that holds the help against them.
[[nodiscard]] std::vector<std::string> option_names(const std::string& command);

}  // namespace vacate
