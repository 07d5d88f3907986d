// SPDX-License-Identifier: Apache-2.0
// The words of `vacate run`: options up to "--", and after that a command that belongs to nobody's parser.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/options.h"

namespace vacate {

[[nodiscard]] std::variant<Options, UsageError> parse_run(const std::vector<std::string>& arguments);
/// Long names of its options, with their dashes.
[[nodiscard]] std::vector<std::string> run_option_names();

}  // namespace vacate
