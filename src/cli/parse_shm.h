// SPDX-License-Identifier: Apache-2.0
// The command line of `vacate shm`.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

/// `arguments` without the program's name and "shm".
[[nodiscard]] std::variant<Options, UsageError> parse_shm(const std::vector<std::string>& arguments);

/// Long names of every option of `list` and `clean`.
[[nodiscard]] std::vector<std::string> shm_option_names();

}  // namespace vacate
