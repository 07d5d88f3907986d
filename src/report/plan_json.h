// SPDX-License-Identifier: Apache-2.0
// A plan as `free --dry-run --json` printed it, read back. Whoever wrote the file, nothing in it is obeyed: it only
// says which steps of a fresh plan somebody has looked at (plan/agreement.h). Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/plan.h"

namespace vacate {

/// The plan in vacate.free/1. Of each step: n, action, key, title, GPUs, rule, reasons and the terms of policies; what
/// the JSON does not have (namespaces of keys, sentences about terms) is empty. Titles are printable, not the bytes
/// that they were. Keys that are not known are passed over, for the schema grows. malformed: what is wrong and where,
/// in one line: "/plan/steps/3/key: expected PID@START, found 17".
[[nodiscard]] Result<Plan> parse_plan_json(std::string_view text);

}  // namespace vacate
