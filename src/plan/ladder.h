// SPDX-License-Identifier: Apache-2.0
// Softest first (design.md, rule 5): which relatives end with the holders, who is asked first, who later. Takes the
// decisions of selection and closure as they are and ends no holder on its own account, except such as have device
// files only and belong to what is ended.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/selection.h"

namespace vacate {

/// How and why one process is ended.
struct Rung {
  Ask ask = Ask::at_once;
  std::string rule;  ///< Step::rule
  std::vector<pid_t>
      for_whom;  ///< for a relative or root: the ended holders it belongs to, sorted; empty for a holder chosen itself
};

/// Everybody who is ended, by pid.
[[nodiscard]] std::map<pid_t, Rung> arrange(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector,
                                            const Decisions& decisions, const FreeRequest& request);

}  // namespace vacate
