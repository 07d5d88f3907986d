// SPDX-License-Identifier: Apache-2.0
// The one command that would help next, and why. Pure. It never proposes what the planner would refuse.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/holder.h"
#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"
#include "report/render_style.h"

namespace vacate {

struct Advice {
  std::string text;
  std::string command;
  bool operator==(const Advice&) const = default;
};

/// What the command was asked: advice repeats it.
struct Asked {
  Selection selection = {};
  std::optional<std::string> policy_file = {};
};

/// Does it ask for less than all holders? GPUs alone do not count: of those that are selected everybody is seen.
[[nodiscard]] bool narrows_holders(const Selection& selection) noexcept;

/// Best first; empty where all is well. `attribution` may be narrowed to what was selected: only that is advised on. A
/// command never reaches further than `asked`; where a word of it cannot be repeated without quotes there is none.
[[nodiscard]] std::vector<Advice> advise(const Snapshot& snapshot, const Attribution& attribution,
                                         const Asked& asked = {});

/// The runtime's own command for each container that `plan` ends or refuses members of and that is not known to be
/// gone: what is ended in a container its runtime may start again, and what is refused it can end. In the order of the
/// plan.
[[nodiscard]] std::vector<Advice> advise_on_containers(const Snapshot& snapshot, const Plan& plan);

/// For people: the first few, and how many more there are.
[[nodiscard]] std::string render_container_advice(const std::vector<Advice>& containers, const RenderStyle& style);

/// For people, on one line where it fits, else the command on a line of its own.
[[nodiscard]] std::string render_advice(const Advice& advice, const RenderStyle& style);

}  // namespace vacate
