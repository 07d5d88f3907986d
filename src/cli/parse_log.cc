// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"
#include "cli/selector_options.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct LogWords {
  bool help = false, json = false;
  std::vector<std::string> pids;
  std::optional<std::string> since, plan;
};

void add_log(CLI::App& app, LogWords& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_list(app, "--pid", words.pids);
  add_value(app, "--since", words.since);
  add_value(app, "--plan", words.plan);
}

std::optional<std::string> parse_since(const std::optional<std::string>& word,
                                       std::optional<std::chrono::milliseconds>& since) {
  std::chrono::milliseconds time{};
  if (auto complaint = parse_time("--since", word, time)) return complaint;
  if (word) since = time;
  return std::nullopt;
}

/// Ids are hexadecimal digits, 16 of them.
std::optional<std::string> parse_plan(const std::optional<std::string>& word, std::string& plan) {
  if (!word) return std::nullopt;
  const bool is_id = !word->empty() && word->size() <= 16 && word->find_first_not_of("0123456789abcdef") == word->npos;
  if (!is_id)
    return fmt::format("--plan: '{}' is no beginning of an id of 16 hexadecimal digits", printable(*word, 64));
  plan = *word;
  return std::nullopt;
}

}  // namespace

std::variant<Options, UsageError> parse_log(const std::vector<std::string>& arguments) {
  LogWords words;
  CLI::App app;
  add_log(app, words);
  LogOptions options;
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(log_help())});
  if (!complaint)
    complaint = first_of({parse_since(words.since, options.since), parse_pid_list("--pid", words.pids, options.pids),
                          parse_plan(words.plan, options.plan)});
  if (complaint) return UsageError{*complaint, "vacate log --help"};
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  return Options(std::move(options));
}

std::vector<std::string> log_option_names() {
  LogWords words;
  CLI::App app;
  add_log(app, words);
  return names_of(app);
}

}  // namespace vacate
