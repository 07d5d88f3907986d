// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct RunWords {
  bool help = false, json = false, quiet = false, keep_shm = false, lock = false;
  std::optional<std::string> grace, timeout, policy, scan;
  std::vector<std::string> gpus;
  std::vector<std::string> operands;
};

void add_run(CLI::App& app, RunWords& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_switch(app, "--quiet", words.quiet);
  add_switch(app, "--keep-shm", words.keep_shm);
  add_switch(app, "--lock", words.lock);
  add_list(app, "--gpu", words.gpus);
  add_value(app, "--policy", words.policy);
  add_value(app, "--scan", words.scan);
  add_value(app, "--grace", words.grace);
  add_value(app, "--timeout", words.timeout);
  app.add_option("WORD", words.operands)->expected(0, -1);
}

/// What is wrong around "--", whoever wrote it.
std::optional<std::string> explain_command(const RunWords& words, bool has_end, const std::vector<std::string>& argv) {
  if (!words.operands.empty() && !has_end)
    return fmt::format("'--' is missing before the command; write 'vacate run -- {} ...'",
                       printable(words.operands.front(), 64));
  if (!words.operands.empty())
    return fmt::format("unexpected argument '{}' before '--'", printable(words.operands.front(), 64));
  if (words.policy && words.policy->empty()) return "--policy: name a file";
  if (std::find(words.gpus.begin(), words.gpus.end(), "") != words.gpus.end())
    return "--gpu: an empty word in its list";
  if (argv.empty()) return "name a command: vacate run -- COMMAND";
  if (argv.front().empty()) return "the name of the command is empty";
  return std::nullopt;
}

}  // namespace

std::variant<Options, UsageError> parse_run(const std::vector<std::string>& arguments) {
  static constexpr auto kTry = "vacate run --help";
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> own(arguments.begin(), end);
  RunWords words;
  CLI::App app;
  add_run(app, words);
  RunOptions options;
  if (end != arguments.end()) options.request.argv.assign(end + 1, arguments.end());
  auto complaint = parse_words(app, own);
  cut_at_commas(words.gpus);
  if (!complaint && words.help) return Options(ShowText{std::string(run_help())});
  if (!complaint)
    complaint = first_of({explain_command(words, end != arguments.end(), options.request.argv),
                          parse_time("--grace", words.grace, options.request.grace),
                          parse_time("--timeout", words.timeout, options.request.check.timeout),
                          parse_scan(words.scan, options.scan)});
  if (complaint) return UsageError{*complaint, kTry};
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.quiet = words.quiet;
  options.policy_file = std::move(words.policy);
  options.request.lock = words.lock;
  options.request.check.keep_shm = words.keep_shm;
  options.request.check.gpu_words = std::move(words.gpus);
  return Options(std::move(options));
}

std::vector<std::string> run_option_names() {
  RunWords words;
  CLI::App app;
  add_run(app, words);
  return names_of(app);
}

}  // namespace vacate
