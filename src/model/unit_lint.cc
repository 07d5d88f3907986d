// SPDX-License-Identifier: Apache-2.0
#include "model/unit_lint.h"

#include <algorithm>

namespace vacate {

std::string_view describe(UnitSeverity severity) noexcept {
  switch (severity) {
    case UnitSeverity::error:
      return "error";
    case UnitSeverity::warning:
      return "warning";
    case UnitSeverity::hint:
      return "hint";
  }
  return "error";
}

ExitCode exit_code_of(const UnitLint& lint) noexcept {
  const bool wrong = std::any_of(lint.findings.begin(), lint.findings.end(),
                                 [](const UnitFinding& found) { return found.severity != UnitSeverity::hint; });
  return wrong ? ExitCode::holders_remain : ExitCode::done;
}

}  // namespace vacate
