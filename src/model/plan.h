// SPDX-License-Identifier: Apache-2.0
// What will be done, in order, with the evidence for each step. Sorted and deterministic: a dry run and the real run of
// the same snapshot are the same bytes. A refusal is a step too, so that it is always shown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/policy.h"
#include "model/process.h"

namespace vacate {

/// `terminate_client`: the control daemon of MPS ends the contexts of a client, which is signalled only once it is a
/// client no more (facts.md 1.8).
enum class Action { signal, terminate_client, stop_unit, unlink, refuse };
[[nodiscard]] std::string_view describe(Action action) noexcept;

/// When a process is asked to end.
enum class Ask {
  at_once,
  at_half_grace,  ///< its root was asked first and may end it
  after_others,   ///< ends by itself when the others are gone; asked only if it did not
};
[[nodiscard]] std::string_view describe(Ask ask) noexcept;

/// Does a step of this kind end its process?
[[nodiscard]] constexpr bool is_ending(Action action) noexcept {
  return action == Action::signal || action == Action::terminate_client || action == Action::stop_unit;
}

/// The service that a step stops, as it was when the plan was made: one that has become another is not stopped.
struct UnitTarget {
  std::string name;           ///< "llm.service"
  std::string control_group;  ///< "/system.slice/llm.service"
  ProcessKey main;            ///< its main process
  bool operator==(const UnitTarget&) const = default;
};

/// The frozen control group that is thawed after TERM was sent to everybody in it.
struct ThawTarget {
  std::string path;
  Freezer freezer = Freezer::v2;
  bool operator==(const ThawTarget&) const = default;
};

struct Step {
  unsigned n = 0;  ///< 1..
  Action action = Action::signal;
  Ask ask = Ask::at_once;
  ProcessKey key;
  std::string title;                 ///< hostile bytes
  bool holder = true;                ///< false: a relative that holds nothing
  std::vector<unsigned> gpus;        ///< what it pins, by index
  std::vector<std::string> because;  ///< every signal cites evidence
  std::string rule;  ///< why refused, or what brought the step in: "leftover", "named", "root-of-tree", "relative", ...
  EndingTerms terms = {};  ///< of policy files
  pid_t mps_server = 0;    ///< terminate_client: whose client it is
  /// Of Action::stop_unit. A unit is stopped once, whatever the number of its steps: one for each holder in it.
  std::optional<UnitTarget> unit = {};
  std::optional<ThawTarget> thaw = {};  ///< of Action::signal: asked for with --thaw
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::string id;  ///< 16 hex digits over everything below
  std::string boot_id;
  std::uint64_t pid_namespace = 0;
  std::vector<Step> steps;
  bool operator==(const Plan&) const = default;

  [[nodiscard]] bool has_action(Action action) const noexcept;
  /// Has it a step that has a process end?
  [[nodiscard]] bool ends_anybody() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return steps.empty(); }
};

}  // namespace vacate
