// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_wait.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"
#include "cli/selector_options.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct WaitWords {
  bool help = false, json = false, quiet = false, idle = false, reap = false, lock = false;
  SelectorTexts selectors;
  std::vector<std::string> ignored_pids, ignored_units;
  std::optional<std::string> used_below, free, hold, timeout, policy, scan;
};

void add_wait(CLI::App& app, WaitWords& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_switch(app, "--quiet", words.quiet);
  add_switch(app, "--idle", words.idle);
  add_switch(app, "--reap", words.reap);
  add_switch(app, "--lock", words.lock);
  add_selector_options(app, words.selectors);
  add_list(app, "--ignore-pid", words.ignored_pids);
  add_list(app, "--ignore-unit", words.ignored_units);
  add_value(app, "--used-below", words.used_below);
  add_value(app, "--free", words.free);
  add_value(app, "--for", words.hold);
  add_value(app, "--timeout", words.timeout);
  add_value(app, "--policy", words.policy);
  add_value(app, "--scan", words.scan);
}

/// "90GiB" or "80%".
Result<MemoryLimit> parse_limit(std::string_view word) {
  if (!word.ends_with('%')) {
    const auto size = parse_size(word);
    if (!size)
      return Error{ErrorCode::malformed,
                   fmt::format("'{}' is neither a size nor a share; write it like 90GiB or 80%", printable(word, 64))};
    return MemoryLimit{*size, {}};
  }
  const auto percent = parse_unsigned(word.substr(0, word.size() - 1));
  if (!percent || *percent > 100)
    return Error{ErrorCode::malformed,
                 fmt::format("'{}' is no share of the memory; write it like 80%", printable(word, 64))};
  return MemoryLimit{{}, static_cast<unsigned>(*percent)};
}

std::optional<std::string> parse_condition(const WaitWords& words, WaitCondition& condition) {
  if ((words.idle ? 1 : 0) + (words.used_below ? 1 : 0) + (words.free ? 1 : 0) > 1)
    return "--idle, --used-below and --free are three questions; ask one";
  if (!words.used_below && !words.free) return std::nullopt;
  const auto limit = parse_limit(words.used_below ? *words.used_below : *words.free);
  const std::string_view option = words.used_below ? "--used-below" : "--free";
  if (!limit) return fmt::format("{}: {}", option, limit.error().message);
  const bool is_nothing = limit->percent ? *limit->percent == 0 : limit->amount.count == 0;
  if (is_nothing) return fmt::format("{}: 0 is {}", option, words.free ? "always free" : "never in use");
  condition = {words.used_below ? ConditionKind::used_below : ConditionKind::free, *limit};
  return std::nullopt;
}

std::optional<std::string> contradiction(const WaitWords& words, const WaitRequest& request) {
  if (words.policy && words.policy->empty()) return "--policy: name a file";
  if (words.reap && !words.selectors.pids.empty())
    return "--reap ends leftovers only, --pid would end whoever is named: name it to 'vacate free'";
  if (request.timeout.count() != 0 && request.hold > request.timeout)
    return "--for is longer than --timeout: the wait could never succeed";
  return std::nullopt;
}

}  // namespace

std::variant<Options, UsageError> parse_wait(const std::vector<std::string>& arguments) {
  WaitWords words;
  CLI::App app;
  add_wait(app, words);
  WaitOptions options;
  auto& request = options.request;
  ParsedSelectors selectors;
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(wait_help())});
  if (!complaint)
    complaint =
        first_of({parse_selectors(words.selectors, selectors),
                  parse_pid_list("--ignore-pid", words.ignored_pids, request.ignored_pids),
                  parse_unit_list("--ignore-unit", words.ignored_units, request.ignored_units),
                  parse_condition(words, request.condition), parse_time("--for", words.hold, request.hold),
                  parse_time("--timeout", words.timeout, request.timeout), parse_scan(words.scan, options.scan)});
  if (!complaint) complaint = contradiction(words, request);
  if (complaint) return UsageError{*complaint, "vacate wait --help"};
  options.words = std::move(selectors.words);
  request.selection.pids = std::move(selectors.pids);
  request.selection.units = options.words.units;
  request.selection.containers = options.words.containers;
  request.selection.jobs = options.words.jobs;
  request.selection.cgroups = options.words.cgroups;
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.quiet = words.quiet;
  options.reap = words.reap;
  options.lock = words.lock;
  options.policy_file = std::move(words.policy);
  return Options(std::move(options));
}

std::vector<std::string> wait_option_names() {
  WaitWords words;
  CLI::App app;
  add_wait(app, words);
  return names_of(app);
}

}  // namespace vacate
