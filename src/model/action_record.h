// SPDX-License-Identifier: Apache-2.0
// What vacate did, or was about to do, to something outside itself: one entry before, one after. Plain values; whatever
// a process or a file chose (titles, names) is hostile bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/process.h"

namespace vacate {

enum class Deed { signal, stop_unit, unlink, thaw, terminate_client, kill_cgroup };
/// "signal", "stop-unit", ...: the word in a record.
[[nodiscard]] std::string_view describe(Deed deed) noexcept;

/// What is about to be done to one process, unit, control group or file.
struct IntendedAction {
  Deed deed = Deed::signal;
  std::string plan;                       ///< id of the plan that it is a step of; empty: of none that has an id
  unsigned n = 0;                         ///< the step
  std::optional<ProcessKey> key;          ///< the process it is done to, where it is one
  std::string target;                     ///< the unit, path or control group, where it is one
  std::string signal;                     ///< "TERM", "CONT", "KILL" of a signal
  std::string title;                      ///< of the process, for people
  std::vector<std::string> because = {};  ///< the evidence that the step cites
};

enum class DeedResult {
  done,        ///< delivered, stopped, removed
  gone,        ///< what it was meant for was not there any more
  denied,      ///< no permission
  left_alone,  ///< a last check spoke against it
  failed,      ///< anything else; the detail says what
};
/// "done", "gone", "denied", "left-alone", "failed".
[[nodiscard]] std::string_view describe(DeedResult result) noexcept;

/// Where the entries of one command went.
struct RecordOutcome {
  std::string where;        ///< "journal", or the path of a file; empty: nothing was recorded
  std::size_t entries = 0;  ///< written there
  std::size_t lost = 0;     ///< that could be written nowhere
  std::string why;          ///< where some were lost, or the place changed on the way: for people
  bool operator==(const RecordOutcome&) const = default;
};

}  // namespace vacate
