// SPDX-License-Identifier: Apache-2.0
// The units that a plan stops, each once, all beside each other. What the service manager does with their processes is
// seen by the caller, who has their descriptors; here is only how far it got with each unit.
#pragma once

#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "model/plan.h"
#include "os/unit_stop.h"

namespace vacate {

class UnitStops {
 public:
  /// `socket`: where the system bus listens. `silence`: after so long a manager that has not accepted is given up.
  UnitStops(std::string socket, std::chrono::milliseconds silence) : socket_(std::move(socket)), silence_(silence) {}

  /// Begins to ask for a stop of the unit, in which `members` were; once a unit. An Error where that cannot even begin;
  /// it is its answer as well.
  [[nodiscard]] Result<void> ask(const UnitTarget& unit, const std::vector<ProcessKey>& members);
  /// Was ask() called for it?
  [[nodiscard]] bool knows(const std::string& unit) const { return stops_.contains(unit); }
  /// Takes what has come.
  void advance();
  /// What became of it; nothing while it is under way or was not asked for.
  [[nodiscard]] const UnitStopAnswer* answer(const std::string& unit) const;
  /// How far it is, for a unit without an answer when time is up.
  [[nodiscard]] std::string whereabouts(const std::string& unit) const;
  /// Whether the manager was asked, for results: a stop may take effect although nobody said so.
  [[nodiscard]] bool was_asked(const std::string& unit) const;
  void add_waits(std::vector<pollfd>& waits) const;
  /// When advance() has something to do although no descriptor is readable.
  [[nodiscard]] std::optional<Deadline::Clock::time_point> next_due() const;

 private:
  struct Stop {
    std::optional<UnitStop> conversation;
    std::optional<UnitStopAnswer> answer;
    Deadline::Clock::time_point silent_at;
  };

  std::string socket_;
  std::chrono::milliseconds silence_;
  std::map<std::string, Stop> stops_;
};

}  // namespace vacate
