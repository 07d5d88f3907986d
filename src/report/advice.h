// SPDX-License-Identifier: Apache-2.0
// The one command that would help next, and why. Pure. It never proposes what the planner would refuse.
#pragma once

#include <string>
#include <vector>

#include "model/holder.h"
#include "model/snapshot.h"
#include "report/render_style.h"

namespace vacate {

struct Advice {
  std::string text;
  std::string command;
  bool operator==(const Advice&) const = default;
};

/// Best first; empty where all is well. `attribution` may be narrowed to what was selected: only that is advised on.
[[nodiscard]] std::vector<Advice> advise(const Snapshot& snapshot, const Attribution& attribution);

/// For people, on one line where it fits, else the command on a line of its own.
[[nodiscard]] std::string render_advice(const Advice& advice, const RenderStyle& style);

}  // namespace vacate
