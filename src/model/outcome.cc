// SPDX-License-Identifier: Apache-2.0
#include "model/outcome.h"

namespace vacate {

ExitCode exit_code_of(const Outcome& outcome) noexcept {
  if (outcome.interrupted_by != 0) return static_cast<ExitCode>(128 + outcome.interrupted_by);
  if (outcome.dry_run) {
    if (outcome.plan.ends_anybody() || outcome.plan.has_action(Action::stop_unit) ||
        outcome.plan.has_action(Action::unlink))
      return ExitCode::holders_remain;  // there is a plan
  }
  switch (outcome.verdict) {
    case Verdict::released:
    case Verdict::nothing_to_do:
      return ExitCode::done;
    case Verdict::holders_remain:
    case Verdict::releasing:
      return ExitCode::holders_remain;
    case Verdict::refused:
      return ExitCode::refused;
    case Verdict::cannot_tell:
      return ExitCode::cannot_tell;
    case Verdict::held_by_nobody:
      return ExitCode::held_by_nobody;
  }
  return ExitCode::defect;
}

}  // namespace vacate
