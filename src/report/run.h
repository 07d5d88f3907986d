// SPDX-License-Identifier: Apache-2.0
// What `vacate run` says once the command has ended: nothing where nothing was left, else a line each. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/run.h"

namespace vacate {

/// Whether processes that were ended in order are worth a line, or only what went wrong.
enum class RunDetail { what_went_wrong, what_was_ended };

/// Lines for standard error, without vacate's name in front.
[[nodiscard]] std::vector<std::string> render_run_lines(const RunOutcome& outcome, RunDetail detail);
/// One JSON object (vacate.run/1) and a line feed.
[[nodiscard]] std::string render_run_json(const RunOutcome& outcome);

}  // namespace vacate
