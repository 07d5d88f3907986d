// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_options.h"

#include <fmt/format.h>

#include "app/version.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"
#include "cli/parse_log.h"
#include "cli/parse_run.h"
#include "cli/parse_shm.h"
#include "cli/parse_unit.h"
#include "cli/parse_wait.h"
#include "cli/selector_options.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct Words {
  bool help = false, json = false, watch = false, quiet = false;
  bool leftovers = false, unsure = false, all = false, yes = false, dry_run = false, term_only = false;
  bool keep_shm = false, stop_units = false, thaw = false;
  SelectorTexts selectors;
  std::vector<std::string> even;
  std::optional<std::string> grace, timeout, replay, policy, plan, scan;
  bool redact = false;
  std::vector<std::string> operands;
};

/// What status, free and why have in common.
void add_selectors(CLI::App& app, Words& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_selector_options(app, words.selectors);
  add_value(app, "--policy", words.policy);
  add_value(app, "--replay", words.replay);
  add_value(app, "--scan", words.scan);
}

void add_why(CLI::App& app, Words& words) {
  add_selectors(app, words);
  app.add_option("SUBJECT", words.operands)->expected(0, -1);
}

void add_doctor(CLI::App& app, Words& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_value(app, "--scan", words.scan);
}

void add_record(CLI::App& app, Words& words) {
  add_help(app, words.help);
  add_switch(app, "--redact", words.redact);
  add_value(app, "--scan", words.scan);
  app.add_option("FILE", words.operands)->expected(0, -1);
}

void add_status(CLI::App& app, Words& words) {
  add_selectors(app, words);
  add_switch(app, "--watch", words.watch);
}

void add_free(CLI::App& app, Words& words) {
  add_selectors(app, words);
  add_switch(app, "--leftovers", words.leftovers);
  add_switch(app, "--unsure", words.unsure);
  add_switch(app, "--all", words.all);
  add_switch(app, "--yes", words.yes);
  add_switch(app, "--dry-run", words.dry_run);
  add_switch(app, "--term-only", words.term_only);
  add_switch(app, "--keep-shm", words.keep_shm);
  add_switch(app, "--stop-units", words.stop_units);
  add_switch(app, "--thaw", words.thaw);
  add_switch(app, "--quiet", words.quiet);
  add_list(app, "--even", words.even);
  add_value(app, "--plan", words.plan);
  add_value(app, "--grace", words.grace);
  add_value(app, "--timeout", words.timeout);
}

std::optional<std::string> clash(const Words& words) {
  if (words.leftovers && (words.all || words.unsure))
    return fmt::format("--leftovers and {} contradict each other", words.all ? "--all" : "--unsure");
  if (words.stop_units && words.term_only)
    return "--stop-units and --term-only contradict each other: the service manager kills what does not end";
  if (words.policy && words.policy->empty()) return "--policy: name a file";
  if (words.plan && words.plan->empty()) return "--plan: name a file";
  if (words.plan && words.replay) return "--plan and --replay contradict each other";
  if (words.yes && words.dry_run) return "--yes and --dry-run contradict each other";
  if (words.replay && words.replay->empty()) return "--replay: the name of a file is missing";
  return std::nullopt;
}

std::variant<Options, UsageError> parse_status(const std::vector<std::string>& arguments, std::string try_command) {
  Words words;
  CLI::App app;
  add_status(app, words);
  StatusOptions options;
  ParsedSelectors selectors;
  const bool has_command = try_command != "vacate --help";
  auto complaint =
      parse_words(app, arguments, has_command ? std::vector<std::string>{} : std::vector<std::string>{"--version"});
  if (!complaint && words.help) return Options(ShowText{std::string(status_help())});
  if (!complaint)
    complaint = first_of(
        {clash(words), parse_selectors(std::move(words.selectors), selectors), parse_scan(words.scan, options.scan)});
  if (!complaint && words.watch && words.json) complaint = "--watch and --json contradict each other";
  if (!complaint && words.watch && words.replay) complaint = "--watch and --replay contradict each other";
  if (complaint) return UsageError{*complaint, std::move(try_command)};
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.words = std::move(selectors.words);
  options.pids = std::move(selectors.pids);
  options.watch = words.watch;
  options.replay = std::move(words.replay);
  options.policy_file = std::move(words.policy);
  return Options(std::move(options));
}

std::variant<Options, UsageError> parse_free(const std::vector<std::string>& arguments) {
  Words words;
  CLI::App app;
  add_free(app, words);
  FreeOptions options;
  auto& request = options.request;
  ParsedSelectors selectors;
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(free_help())});
  if (!complaint)
    complaint =
        first_of({clash(words), parse_selectors(std::move(words.selectors), selectors),
                  parse_pid_list("--even", std::move(words.even), request.even),
                  parse_time("--grace", words.grace, request.grace),
                  parse_time("--timeout", words.timeout, request.timeout), parse_scan(words.scan, options.scan)});
  if (!complaint && words.replay && !words.dry_run)
    complaint = "--replay goes with --dry-run only: nothing of a recorded machine can be ended";
  if (complaint) return UsageError{*complaint, "vacate free --help"};
  request.scope = words.all ? Scope::all : words.unsure ? Scope::unsure : Scope::leftovers;
  request.term_only = words.term_only;
  request.keep_shm = words.keep_shm;
  request.stop_units = words.stop_units;
  request.thaw = words.thaw;
  request.selection.pids = std::move(selectors.pids);
  request.selection.units = selectors.words.units;
  request.selection.containers = selectors.words.containers;
  request.selection.jobs = selectors.words.jobs;
  request.selection.cgroups = selectors.words.cgroups;
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.words = std::move(selectors.words);
  options.mode = words.dry_run ? Mode::dry_run : words.yes ? Mode::yes : Mode::ask;
  options.quiet = words.quiet;
  options.usual_timeout = !words.timeout;
  options.replay = std::move(words.replay);
  options.policy_file = std::move(words.policy);
  options.plan_file = std::move(words.plan);
  return Options(std::move(options));
}

/// "4711", "4711@156405", "gpu:0", "GPU-ab..." to the lists of --pid and --gpu.
std::optional<std::string> sort_subjects(const std::vector<std::string>& subjects, ParsedSelectors& selectors) {
  auto& words = selectors.words;
  for (const auto& subject : subjects) {
    const bool is_gpu = subject.starts_with("gpu:") && subject.size() > 4;
    if (is_gpu || subject.starts_with("GPU-")) {
      words.gpus.push_back(is_gpu ? subject.substr(4) : subject);
      continue;
    }
    const auto process = parse_process_selector(subject);
    if (!process)
      return fmt::format("'{}' is neither a process nor a GPU; write PID, PID@START or gpu:N", printable(subject, 64));
    selectors.pids.push_back(*process);
  }
  const bool by_place =
      !words.units.empty() || !words.containers.empty() || !words.jobs.empty() || !words.cgroups.empty();
  if (selectors.pids.empty() && words.gpus.empty() && words.users.empty() && !by_place)
    return "name a process or a GPU: PID, PID@START or gpu:N";
  return std::nullopt;
}

std::variant<Options, UsageError> parse_why(const std::vector<std::string>& arguments) {
  Words words;
  CLI::App app;
  add_why(app, words);
  WhyOptions options;
  ParsedSelectors selectors;
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(why_help())});
  if (!complaint)
    complaint = first_of(
        {clash(words), parse_selectors(std::move(words.selectors), selectors), parse_scan(words.scan, options.scan)});
  if (!complaint) complaint = sort_subjects(words.operands, selectors);
  if (complaint) return UsageError{*complaint, "vacate why --help"};
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.words = std::move(selectors.words);
  options.pids = std::move(selectors.pids);
  options.replay = std::move(words.replay);
  options.policy_file = std::move(words.policy);
  return Options(std::move(options));
}

std::variant<Options, UsageError> parse_doctor(const std::vector<std::string>& arguments) {
  Words words;
  CLI::App app;
  add_doctor(app, words);
  DoctorOptions options;
  auto complaint = parse_words(app, arguments);
  if (!complaint) complaint = parse_scan(words.scan, options.scan);
  if (complaint) return UsageError{*complaint, "vacate doctor --help"};
  if (words.help) return Options(ShowText{std::string(doctor_help())});
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  return Options(options);
}

std::variant<Options, UsageError> parse_record(const std::vector<std::string>& arguments) {
  Words words;
  CLI::App app;
  add_record(app, words);
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(record_help())});
  if (!complaint && words.operands.size() > 1)
    complaint = fmt::format("unexpected argument '{}'", printable(words.operands[1], 64));
  if (!complaint && !words.operands.empty() && words.operands.front().empty())
    complaint = "the name of the file is empty";
  RecordOptions options;
  options.redact = words.redact;
  if (!complaint) complaint = parse_scan(words.scan, options.scan);
  if (complaint) return UsageError{*complaint, "vacate record --help"};
  if (!words.operands.empty()) options.file = std::move(words.operands.front());
  return Options(std::move(options));
}

UsageError unknown_command(const std::string& word) {
  static const std::vector<std::string> kWords = {"status", "free", "wait",   "run",  "why",    "doctor",   "shm",
                                                  "unit",   "log",  "record", "help", "--help", "--version"};
  const std::string shown = printable(word, 64);
  // "vacate 4711", "vacate gpu:0": what somebody would want to know of it.
  const bool is_subject = parse_process_selector(word).has_value() || word.starts_with("gpu:");
  return {fmt::format("unknown command '{}'{}", shown,
                      is_subject ? fmt::format("; did you mean 'vacate why {}'?", shown) : suggestion(word, kWords)),
          "vacate --help"};
}

/// "vacate help free" as "vacate free --help".
std::variant<Options, UsageError> parse_help(const std::vector<std::string>& words) {
  if (words.size() > 1)
    return UsageError{fmt::format("unexpected argument '{}'", printable(words[1], 64)), "vacate --help"};
  if (words[0].starts_with('-') || words[0] == "help") return Options(ShowText{std::string(general_help())});
  return parse_options({words[0], "--help"});
}

}  // namespace

std::variant<Options, UsageError> parse_options(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return Options(StatusOptions{});
  const std::string& first = arguments.front();
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (first == "help" && !rest.empty()) return parse_help(rest);
  if (first == "--help" || first == "-h" || first == "help") return Options(ShowText{std::string(general_help())});
  if (first == "--version") return Options(ShowText{fmt::format("vacate {}\n", kVersion)});
  if (first == "status") return parse_status(rest, "vacate status --help");
  if (first == "free") return parse_free(rest);
  if (first == "wait") return parse_wait(rest);
  if (first == "why") return parse_why(rest);
  if (first == "doctor") return parse_doctor(rest);
  if (first == "run") return parse_run(rest);
  if (first == "shm") return parse_shm(rest);
  if (first == "log") return parse_log(rest);
  if (first == "unit") return parse_unit(rest);
  if (first == "record") return parse_record(rest);
  if (first.starts_with('-')) return parse_status(arguments, "vacate --help");
  return unknown_command(first);
}

std::vector<std::string> option_names(const std::string& command) {
  Words words;
  CLI::App app;
  if (command == "shm") return shm_option_names();
  if (command == "log") return log_option_names();
  if (command == "wait") return wait_option_names();
  if (command == "run") return run_option_names();
  if (command == "unit") return unit_option_names();
  if (command == "free")
    add_free(app, words);
  else if (command == "why")
    add_why(app, words);
  else if (command == "doctor")
    add_doctor(app, words);
  else if (command == "record")
    add_record(app, words);
  else
    add_status(app, words);
  return names_of(app);
}

}  // namespace vacate
