// SPDX-License-Identifier: Apache-2.0
// What `vacate unit` says, as text and as JSON. Pure.
#pragma once

#include <string>

#include "model/unit_lint.h"
#include "report/render_style.h"

namespace vacate {

[[nodiscard]] std::string render_unit_lint_text(const UnitLint& lint, const RenderStyle& style);
/// One JSON object and a line feed (vacate.unit-lint/1).
[[nodiscard]] std::string render_unit_lint_json(const UnitLint& lint);
/// One JSON object and a line feed (vacate.unit-dropin/1).
[[nodiscard]] std::string render_unit_dropin_json(const UnitDropin& dropin);

}  // namespace vacate
