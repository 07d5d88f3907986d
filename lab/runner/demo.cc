// SPDX-License-Identifier: Apache-2.0
// `vacate-lab demo`: tells the story of a case to a person. Everything shown is real: the pids, the driver's figures,
// the command and what it printed. Expectations that need no JSON are checked on the way.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/text.h"
#include "lab/runner/commands.h"
#include "lab/runner/failure_text.h"

namespace lab {
namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& used) {
  return std::accumulate(used.begin(), used.end(), std::uint64_t{0});
}

double gib(std::uint64_t mib) { return static_cast<double>(mib) / 1024; }

/// Tells a case step by step. Prints; keeps no figure longer than it needs to say what came back.
class Narrator {
 public:
  Narrator(Machine& machine, const Case& scenario) : machine_(machine), case_(scenario) {}

  /// The exit status of the demo.
  int tell();

 private:
  void tell_beginning();
  void print_gpus(const std::vector<std::uint64_t>& used);
  void print_processes();
  void print_step(const StepOutcome& outcome, const Step& step);
  void print_end(std::uint64_t before);
  std::vector<std::uint64_t> used();

  Machine& machine_;
  const Case& case_;
  std::vector<std::uint64_t> last_;  ///< the figures that were printed last
};

std::vector<std::uint64_t> Narrator::used() {
  auto figures = machine_.used_mib();
  if (figures) return std::move(*figures);
  fmt::print("  (the driver does not say: {})\n", figures.error().message);
  return last_;
}

void Narrator::print_gpus(const std::vector<std::uint64_t>& used) {
  constexpr std::size_t kWidth = 30;
  for (std::size_t index = 0; index < used.size(); ++index) {
    const std::uint64_t total = case_.machine.gpus[index].memory;
    const std::size_t filled = total == 0 ? 0 : std::min(kWidth, used[index] * kWidth / total);
    fmt::print("  GPU {}  {:>7} / {} MiB  [{:-<{}}]\n", index, used[index], total, std::string(filled, '#'), kWidth);
  }
  last_ = used;
}

/// "96619 MiB on GPU 0": what the clients of one process add up to on the same GPUs.
std::string holds_text(const ActorSpec& actor) {
  std::vector<std::pair<std::string, Mib>> places;
  std::vector<std::string> parts;
  for (const HoldSpec& hold : actor.holds) {
    if (hold.memory == 0) {
      parts.push_back(hold.from.empty() ? "device files" : "what " + hold.from + " had");
      continue;
    }
    const std::string place =
        fmt::format("{}GPU {}", hold.gpus.size() > 1 ? "each of " : "", fmt::join(hold.gpus, ", "));
    const auto known = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == place; });
    if (known == places.end()) {
      places.emplace_back(place, hold.memory);
    } else {
      known->second += hold.memory;
    }
  }
  for (const auto& [place, mib] : places) parts.push_back(fmt::format("{} MiB on {}", mib, place));
  return fmt::format("{}", fmt::join(parts, "; "));
}

void Narrator::print_processes() {
  for (const ActorSpec& actor : case_.actors) {
    const auto status = machine_.actor(actor.name);
    if (!status || status->pid == 0) continue;
    const std::string title = actor.title.empty() ? command_line(actor.argv) : vacate::printable(actor.title);
    const std::string holds = holds_text(actor);
    fmt::print("  {:>6}  {}{}\n", status->pid, vacate::elide_middle(title, 50),
               holds.empty() ? "" : fmt::format("  (holds {})", holds));
  }
}

void Narrator::tell_beginning() {
  fmt::print("\n{}\n", vacate::printable(case_.title));
  if (!case_.wrong.empty()) fmt::print("The wrong move would be one that {}.\n", vacate::printable(case_.wrong));
  fmt::print("\nThe processes:\n");
  print_processes();
  fmt::print("\nThe driver says:\n");
  print_gpus(used());
}

void Narrator::print_step(const StepOutcome& outcome, const Step& step) {
  const bool command = std::holds_alternative<verb::Run>(step.verb);
  fmt::print("\n{} {}\n", command ? "$" : "--", describe(step, outcome));
  if (outcome.command) {
    fmt::print("{}{}", quote_output(outcome.command->out, "  "), quote_output(outcome.command->err, "  "));
    fmt::print("  (exit code {}, {:.2f} s)\n", outcome.command->exit_code, outcome.command->seconds);
  }
  constexpr std::size_t kShown = 8;
  const auto& differences = outcome.differences;
  for (std::size_t n = 0; n < std::min(kShown, differences.size()); ++n) {
    fmt::print("  NOT as the case tells it: {}\n", vacate::printable(differences[n]));
  }
  if (differences.size() > kShown) fmt::print("  ({} differences more)\n", differences.size() - kShown);
  if (std::holds_alternative<verb::Signal>(step.verb)) return;  // nobody can have ended yet
  const auto now = used();
  if (now == last_) return fmt::print("The driver's figures have not changed.\n");
  fmt::print("The driver says:\n");
  print_gpus(now);
}

void Narrator::print_end(std::uint64_t before) {
  const std::uint64_t after = sum(used());
  if (after < before) return fmt::print("\n{:.0f} GiB came back.\n", gib(before - after));
  fmt::print("\nNothing came back: {:.0f} GiB are in use, as before.\n", gib(after));
}

int Narrator::tell() {
  tell_beginning();
  const std::uint64_t before = sum(last_);
  StepsOptions options;
  options.audience = Audience::people;
  StepRunner runner(machine_, case_, options);
  int status = 0;
  for (const Step& step : case_.steps) {
    const StepOutcome outcome = runner.execute(step);
    print_step(outcome, step);
    std::fflush(stdout);
    if (!outcome.differences.empty()) status = 1;
  }
  print_end(before);
  return status;
}

}  // namespace

int demo_command(const DemoOptions& options) {
  const auto scenario = runnable_case(options.file);
  if (!scenario) return say_failure(scenario.error());
  const auto status = run_in_machine(*scenario, options.paths, [&](Machine& machine) {
    if (const auto started = machine.start_actors(); !started) return say_failure(started.error());
    const int told = Narrator(machine, *scenario).tell();
    std::fflush(stdout);
    return told;
  });
  return status ? *status : say_failure(status.error());
}

}  // namespace lab
