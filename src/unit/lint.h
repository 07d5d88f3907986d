// SPDX-License-Identifier: Apache-2.0
// What in a systemd unit hurts a service that uses GPUs. Every rule says what systemd does with the line, why that
// hurts and what to write instead; each was measured on systemd 252 or comes from a report that its comment names.
// Pure: the same text gives the same findings.
#pragma once

#include <string>
#include <vector>

#include "model/unit_lint.h"
#include "unit/unit_text.h"

namespace vacate {

/// Whose work a service does. Hubs, schedulers and logins are stopped and restarted beside the work of their users.
enum class UnitWork { its_own, of_others };

struct UnitToLint {
  std::string prefix;  ///< of its name: "llm" of "llm@0.service"; empty: not known
  UnitSettings settings;
  UnitWork work = UnitWork::its_own;
  std::vector<UnitSource> environment_files;    ///< those of environment_files_of() that could be read
  std::vector<std::string> unread_environment;  ///< the paths of the others
};

/// The paths of EnvironmentFile= that count, without `-`. Patterns and specifiers are still in them.
[[nodiscard]] std::vector<std::string> environment_files_of(const UnitSettings& settings);

/// Findings by file in the order in which systemd reads them and by line; those about what is missing come last.
[[nodiscard]] std::vector<UnitFinding> lint_unit(const UnitToLint& unit);

}  // namespace vacate
