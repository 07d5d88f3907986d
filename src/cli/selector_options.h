// SPDX-License-Identifier: Apache-2.0
// The selectors that commands share (cli.md): declared once, checked once. What only the machine can resolve stays a
// word.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option_words.h"
#include "cli/options.h"

namespace vacate {

/// Selectors as they were written.
struct SelectorTexts {
  std::vector<std::string> gpus, pids, users, units, containers, jobs, cgroups;
};

/// What was meant: words for the machine to resolve, and processes.
struct ParsedSelectors {
  SelectorWords words;
  std::vector<ProcessSelector> pids;
};

void add_selector_options(CLI::App& app, SelectorTexts& texts);

/// `selectors` gets what was written. Returned: nothing, or what is wrong.
[[nodiscard]] std::optional<std::string> parse_selectors(SelectorTexts texts, ParsedSelectors& selectors);

/// A list of PID or PID@START, cut at commas.
[[nodiscard]] std::optional<std::string> parse_pid_list(std::string_view option, std::vector<std::string> words,
                                                        std::vector<ProcessSelector>& pids);
/// A list of units, cut at commas; complaints name `option`.
[[nodiscard]] std::optional<std::string> parse_unit_list(std::string_view option, std::vector<std::string> words,
                                                         std::vector<std::string>& units);

}  // namespace vacate
