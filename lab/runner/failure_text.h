// SPDX-License-Identifier: Apache-2.0
// How a step that did not go as expected is told: which, where in the file, what differs, what the command printed.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/case/case.h"
#include "lab/runner/steps.h"

namespace lab {

/// A command as it could be typed into a shell.
[[nodiscard]] std::string command_line(const std::vector<std::string>& argv);

/// "signal KILL to api", "exits engine", "vacate free --yes": what a step does.
[[nodiscard]] std::string describe(const Step& step, const StepOutcome& outcome);

/// `text` for a terminal, each line after `prefix`, with what is beyond a few thousand bytes left out and counted.
[[nodiscard]] std::string quote_output(std::string_view text, std::string_view prefix);

/// The lines about a step with differences; `number` counts from 1.
[[nodiscard]] std::string failure_text(const Case& scenario, std::size_t number, const StepOutcome& outcome);

}  // namespace lab
