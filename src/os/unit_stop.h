// SPDX-License-Identifier: Apache-2.0
// Asks the system's service manager to stop one service, in an expendable child, and waits for its job to end. The only
// place that can stop a unit. Right before asking it is made sure that the unit is still the one that was planned for,
// and that nobody has come into it since; the manager knows no stop with a condition, so what happens in the moment
// between is stopped too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "model/plan.h"
#include "os/expendable.h"
#include "os/frame.h"
#include "os/system_bus.h"

namespace vacate {

enum class UnitStopEnd {
  stopped,      ///< the manager says that its job is done
  not_stopped,  ///< the manager tried, or was told otherwise meanwhile
  denied,       ///< the bus, the manager or polkit does not let us
  unreachable,  ///< there is no manager to ask, or the connection broke
  changed,      ///< the unit is not what was planned for any more, in it or as a whole, or the manager does not know it
};

struct UnitStopAnswer {
  UnitStopEnd end = UnitStopEnd::unreachable;
  std::string detail;  ///< for people, with words of the manager: hostile
};

class UnitStop {
 public:
  /// Begins. `members`: who was in the unit when its stop was planned, so that nobody else ends by it. `socket`: where
  /// the bus listens. An Error where no child can be made.
  [[nodiscard]] static Result<UnitStop> start(const UnitTarget& unit, const std::vector<ProcessKey>& members,
                                              const std::string& socket = kSystemBusSocket);

  /// Readable when advance() may have something new.
  [[nodiscard]] int descriptor() const noexcept { return child_.descriptor(); }
  /// Takes what has come, never blocks. The answer once there is one; then it is over.
  [[nodiscard]] std::optional<UnitStopAnswer> advance();
  /// The unit was found to be the planned one and the manager has been asked, whether it has answered or not.
  [[nodiscard]] bool was_asked() const noexcept { return asked_; }
  /// The manager has accepted: a job of its own is under way.
  [[nodiscard]] bool was_accepted() const noexcept { return accepted_; }

 private:
  explicit UnitStop(Expendable child) noexcept : child_(std::move(child)) {}

  Expendable child_;
  FrameStream stream_{65536};
  bool asked_ = false;
  bool accepted_ = false;
};

}  // namespace vacate
