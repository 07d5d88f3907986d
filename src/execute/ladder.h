// SPDX-License-Identifier: Apache-2.0
// When the next signal to one process is due: softest first (design.md section 5, rule 5). Pure: it is told the time
// and sends nothing.
#pragma once

#include <chrono>
#include <optional>

#include "base/deadline.h"
#include "execute/executor.h"
#include "model/plan.h"

namespace vacate {

/// Where one process stands.
struct Progress {
  Ask ask = Ask::at_once;
  std::optional<Deadline::Clock::time_point> asked;               ///< TERM was sent
  bool killed = false;                                            ///< KILL was sent
  bool term_only = false;                                         ///< a policy's word: never KILL
  std::optional<std::chrono::milliseconds> grace = std::nullopt;  ///< a policy's word: so long after its own TERM
  /// TERM has to wait until then: it may end by itself.
  std::optional<Deadline::Clock::time_point> not_before = std::nullopt;
};

/// What all of a run share.
struct LadderTimes {
  ExecutionRules rules;
  Deadline::Clock::time_point first_term;
  /// Since when everybody who is not `after_others` is gone.
  std::optional<Deadline::Clock::time_point> others_gone;
};

/// When TERM (not asked yet) or KILL (asked) is due; nothing while neither ever will be. A process that was asked late
/// still gets half the grace between TERM and KILL, and what a policy leaves it in any case.
[[nodiscard]] std::optional<Deadline::Clock::time_point> next_signal_at(const Progress& rung,
                                                                        const LadderTimes& times) noexcept;

}  // namespace vacate
