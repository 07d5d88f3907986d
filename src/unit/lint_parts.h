// SPDX-License-Identifier: Apache-2.0
// The groups of checks that lint_unit() runs. Only files of this folder include it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/unit_lint.h"
#include "unit/lint.h"
#include "unit/service_facts.h"

namespace vacate {

/// Collects findings.
class UnitFindings {
 public:
  struct Words {
    std::string_view code;
    std::string reason;
    std::string fix;
  };
  /// About a line of the unit.
  void add(UnitSeverity severity, const UnitSetting& at, Words words);
  /// About the unit as a whole: something is missing.
  void add_missing(UnitSeverity severity, std::string_view key, Words words);
  void add_flaw(const UnitFlaw& flaw);

  [[nodiscard]] std::vector<UnitFinding> take() && { return std::move(found_); }

 private:
  std::vector<UnitFinding> found_;
};

/// Variables and percent signs.
void lint_words(const UnitToLint& unit, const ServiceFacts& facts, UnitFindings& findings);
/// What commands do: loops, kills by name, removals, calls of vacate.
void lint_commands(const ServiceFacts& facts, UnitFindings& findings);
/// Settings of the service: how it is stopped, how long it may take, when it is started again.
void lint_service(const UnitToLint& unit, const ServiceFacts& facts, UnitFindings& findings);

}  // namespace vacate
