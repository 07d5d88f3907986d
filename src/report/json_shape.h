// SPDX-License-Identifier: Apache-2.0
// What can be said of a stranger's JSON before anything is built from it. For the files of report/ that read JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vacate::json {

/// "is nested too deeply at byte 17": nesting, keys and values of a hostile text could take a hundred times its size in
/// memory, and its square in time. Nothing: it may be parsed.
[[nodiscard]] std::optional<std::string> excess_of(std::string_view text);
/// "is not JSON from byte 17 on", for a text that could not be parsed.
[[nodiscard]] std::string why_no_json(std::string_view text);

}  // namespace vacate::json
