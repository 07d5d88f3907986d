// SPDX-License-Identifier: Apache-2.0
// What a plan that somebody has looked at and a fresh one have in common: that, and nothing else, is what they agreed
// to. The older plan never brings anybody in; it only says whom of the fresh plan it had too.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/holder.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace vacate {

/// What becomes of steps that only the fresh plan has.
enum class Newcomers {
  named,          ///< they are steps that are not done, so that they are shown and no later round takes them up
  left_to_rounds  ///< no step: a later round adds them if they belong to what is ended, else nobody does
};

struct Agreement {
  /// The common steps as the fresh plan has them, under the stricter terms of the two; then, as refusals, those that
  /// only one of them has. Both the same: exactly the fresh plan.
  Plan plan;
  std::vector<StepResult> decided;  ///< of those refusals: already-gone, identity-changed, or skipped with the reason
  std::vector<unsigned> aside;      ///< n of those that say nothing about whether the reviewed plan was carried out
};

/// Rule of a step that only the older plan has: its process has ended since, or another reason; of one that only the
/// fresh plan has.
inline constexpr std::string_view kAlreadyGone = "already-gone";
inline constexpr std::string_view kNotPlannedNow = "not-planned-now";
inline constexpr std::string_view kNotReviewed = "not-reviewed";

/// refused: `reviewed` is of another boot or pid namespace than `fresh`, so its pids are those of others.
[[nodiscard]] Result<void> check_same_machine(const Plan& reviewed, const Plan& fresh);

/// `fresh` was planned from `snapshot` and `attribution`; `reviewed` may be from anybody. Steps are the same if their
/// action is and their process: pid, start and, where both know it, the pidfd's inode.
[[nodiscard]] Agreement agree(const Plan& reviewed, const Plan& fresh, const Snapshot& snapshot,
                              const Attribution& attribution, Newcomers newcomers);

}  // namespace vacate
