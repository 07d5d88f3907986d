// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/failure_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace lab {
namespace {

constexpr std::size_t kQuotedBytes = 16000;

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool is_one(const std::vector<std::string>& globs) {
  return globs.size() == 1 && globs.front().find_first_of("*?[") == std::string::npos;
}

struct Describer {
  const StepOutcome& outcome;

  std::string operator()(const verb::Signal& signal) const {
    std::vector<std::string> names;
    for (const auto& target : signal.to)
      names.push_back(target.group ? "the process group of " + target.name : target.name);
    return fmt::format("{} {} SIG{}", fmt::join(names, ", "), is_one(names) ? "gets" : "get", signal.word);
  }
  std::string operator()(const verb::Exits& exits) const {
    return fmt::format("{} {}", fmt::join(exits.names, ", "), is_one(exits.names) ? "ends" : "end");
  }
  std::string operator()(const verb::Sleep& sleep) const { return fmt::format("{:g} s pass", sleep.seconds); }
  std::string operator()(const verb::Start& start) const {
    return fmt::format("{} starts", fmt::join(start.names, ", "));
  }
  std::string operator()(const verb::PidReuse& reuse) const {
    return fmt::format("{} starts with the pid that {} had", reuse.by, reuse.of);
  }
  std::string operator()(const verb::Run& run) const {
    return command_line(outcome.argv.empty() ? run.argv : outcome.argv) + (run.background.empty() ? "" : " &");
  }
  std::string operator()(const verb::Finish& finish) const {
    return outcome.argv.empty() ? finish.background + " ends" : command_line(outcome.argv) + " ends";
  }
};

}  // namespace

std::string command_line(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) line += (line.empty() ? "" : " ") + shell_word(word);
  return vacate::printable(line);
}

std::string describe(const Step& step, const StepOutcome& outcome) { return std::visit(Describer{outcome}, step.verb); }

std::string quote_output(std::string_view text, std::string_view prefix) {
  std::string quoted;
  if (text.empty()) return quoted;
  std::string_view shown = text.substr(0, kQuotedBytes);
  if (shown.ends_with('\n')) shown.remove_suffix(1);
  for (const std::string_view line : vacate::split(shown, '\n')) {
    quoted += fmt::format("{}{}\n", prefix, vacate::printable(line, kQuotedBytes));
  }
  if (text.size() > kQuotedBytes) quoted += fmt::format("{}({} bytes more)\n", prefix, text.size() - kQuotedBytes);
  return quoted;
}

std::string failure_text(const Case& scenario, std::size_t number, const StepOutcome& outcome) {
  const Step& step = scenario.steps[number - 1];
  std::string text =
      fmt::format("  step {}, {}:{}: {}\n", number, scenario.path, step.at.line, describe(step, outcome));
  for (const std::string& difference : outcome.differences) {
    text += fmt::format("    {}\n", vacate::printable(difference, kQuotedBytes));
  }
  if (!outcome.command) return text;
  const CommandResult& command = *outcome.command;
  text += fmt::format("    exit code {}, {:.2f} s\n", command.exit_code, command.seconds);
  if (!command.out.empty()) text += "    standard output:\n" + quote_output(command.out, "    | ");
  if (!command.err.empty()) text += "    standard error:\n" + quote_output(command.err, "    | ");
  return text;
}

}  // namespace lab
