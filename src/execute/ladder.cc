// SPDX-License-Identifier: Apache-2.0
#include "execute/ladder.h"

#include <algorithm>

namespace vacate {

std::optional<Deadline::Clock::time_point> next_signal_at(const Progress& rung, const LadderTimes& times) noexcept {
  const auto& rules = times.rules;
  if (rung.killed) return std::nullopt;
  if (rung.asked) {
    if (rules.escalation == Escalation::term_only || rung.term_only) return std::nullopt;
    const auto own = rung.grace.value_or(rules.grace / 2);
    return std::max(times.first_term + rules.grace, *rung.asked + std::max(own, rules.grace / 2));
  }
  switch (rung.ask) {
    case Ask::at_once:
      return rung.not_before ? std::max(*rung.not_before, times.first_term) : times.first_term;
    case Ask::at_half_grace:
      return times.first_term + rules.grace / 2;
    case Ask::after_others:
      if (!times.others_gone) return std::nullopt;
      return *times.others_gone + rules.patience;
  }
  return std::nullopt;
}

}  // namespace vacate
