// SPDX-License-Identifier: Apache-2.0
// Who is left, and why: processes that did not end, and processes that a supervisor started in place of those that did.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "model/outcome.h"
#include "verify/sighting.h"

namespace vacate {

/// `replacement` is the same program as `ended`, started since by the parent of `ended`, which is alive.
struct Replacement {
  unsigned step = 0;  ///< of the one that was ended
  ProcessKey ended;
  ProcessKey replacement;
  pid_t parent = 0;
  std::string parent_title;  ///< hostile bytes
  bool operator==(const Replacement&) const = default;
};

/// Processes that undo what was done: a kill that is undone is no success (report BR-126). Children of shells and
/// children of who merely adopted the ended one are other work, not replacements.
[[nodiscard]] std::vector<Replacement> find_replacements(const Sighting& before, const Plan& plan,
                                                         const std::vector<StepResult>& results, const Snapshot& now);

/// Is somebody among those who ended whose parent could start another?
[[nodiscard]] bool may_be_replaced(const Sighting& before, const Plan& plan, const std::vector<StepResult>& results);

/// Says in the results of those who are still there what keeps them: stuck in the driver, frozen, traced, dumping core.
void explain_survivors(std::vector<StepResult>& results, const Plan& plan, const Snapshot& now);

}  // namespace vacate
