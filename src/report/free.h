// SPDX-License-Identifier: Apache-2.0
// What `vacate free` prints: the plan, what came of it and the verdict, for people and as vacate.free/1. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "model/outcome.h"
#include "model/policy.h"
#include "report/advice.h"
#include "report/render_style.h"

namespace vacate {

/// An outcome with the names of those who are left, for people.
struct FreeReport {
  Outcome outcome;
  std::vector<std::pair<pid_t, std::string>>
      titles;  ///< of the pids in held_by and reset_blockers, by pid; hostile bytes
  std::vector<Advice> advice;
  std::vector<std::string> notes = {};  ///< whom the request left out though it pins, a line each
  bool of_selected = false;             ///< only some holders or GPUs were asked about
  Scope scope = Scope::leftovers;       ///< who was asked about
  bool has_driver = true;               ///< false: neither a driver nor a device node is here, so nothing can be pinned
  std::vector<Advice> containers = {};  ///< how to stop those whose members the plan ends or refuses
};

/// "grace 300 s > --timeout 60 s; use --timeout 6min" where KILL would come after the time limit of the whole command;
/// nothing for one that is never killed.
[[nodiscard]] std::optional<std::string> late_kill(const Step& step, const FreeRequest& request);

/// The plan as it is shown before anybody is asked, and by a dry run.
[[nodiscard]] std::string render_plan_text(const Plan& plan, const FreeRequest& request, const RenderStyle& style);
/// What came of it: exceptions by name, a line a GPU, the verdict in a sentence.
[[nodiscard]] std::string render_outcome_text(const FreeReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_free_json(const Outcome& outcome, Source source = Source::machine);

}  // namespace vacate
