// SPDX-License-Identifier: Apache-2.0
// Looks up JSON pointers with selectors in a command's output and compares what is there with what a case expects.
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/case/case.h"

namespace lab {

using Json = nlohmann::ordered_json;

/// The document in `text`, or nothing if it is not exactly one JSON value.
[[nodiscard]] std::optional<Json> parse_json(std::string_view text);

/// What `pointer` points at, owned by `document`. gone: it is not there, and the message says which part; malformed: no
/// pointer.
[[nodiscard]] vacate::Result<const Json*> find_json(const Json& document, std::string_view pointer);

/// Nothing if `document` is as expected, else one line "POINTER: expected .., found ..". {pid:NAME} must have been
/// replaced.
[[nodiscard]] std::optional<std::string> json_difference(const Json& document, const JsonExpectation& expectation);

/// `value` on one line, cut when it is long.
[[nodiscard]] std::string brief(const Json& value);

}  // namespace lab
