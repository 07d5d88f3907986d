// SPDX-License-Identifier: Apache-2.0
// To whom an executor says what it is about to do and what came of it. An entry before and one after: a vacate that is
// ended between the two leaves nothing unnamed. Whoever signals, stops, thaws or unlinks does it between these calls;
// a dry run has no log.
#pragma once

#include <string_view>

#include "model/action_record.h"

namespace vacate {

/// Of an action that was announced and not answered for yet.
struct ActionTicket {
  std::uint64_t number = 0;  ///< within one log, 1..
};

class ActionLog {
 public:
  virtual ~ActionLog() = default;
  /// Before it is done. Returns once the entry, and every result before it, is kept as safely as this machine can.
  /// Where nothing can be kept it returns all the same: outcome() tells.
  [[nodiscard]] virtual ActionTicket about_to(const IntendedAction& action) = 0;
  /// After it, and before the next one is announced or done. `detail` is for people; hostile bytes are fine.
  virtual void came_of(ActionTicket ticket, const IntendedAction& action, DeedResult result,
                       std::string_view detail = {}) = 0;
  /// So far; makes the last results as safe as the rest.
  [[nodiscard]] virtual RecordOutcome outcome() = 0;
};

/// Keeps nothing: for tests, and where there is nobody to keep it.
class NoActionLog final : public ActionLog {
 public:
  [[nodiscard]] ActionTicket about_to(const IntendedAction& /*action*/) override { return {}; }
  void came_of(ActionTicket /*ticket*/, const IntendedAction& /*action*/, DeedResult /*result*/,
               std::string_view /*detail*/) override {}
  [[nodiscard]] RecordOutcome outcome() override { return {}; }
};

/// The result to be recorded for an error that `perform` ran into.
[[nodiscard]] inline DeedResult deed_result_of(ErrorCode code) noexcept {
  if (code == ErrorCode::gone) return DeedResult::gone;
  if (code == ErrorCode::denied) return DeedResult::denied;
  return code == ErrorCode::refused ? DeedResult::left_alone : DeedResult::failed;
}

/// The way that fits one action at a time: announces `action`, does it by `perform`, which returns a Result<void>, and
/// records what came of it.
template <class Perform>
[[nodiscard]] Result<void> recorded(ActionLog& log, const IntendedAction& action, Perform perform) {
  const ActionTicket ticket = log.about_to(action);
  Result<void> result = perform();
  if (result)
    log.came_of(ticket, action, DeedResult::done);
  else
    log.came_of(ticket, action, deed_result_of(result.error().code), result.error().message);
  return result;
}

}  // namespace vacate
