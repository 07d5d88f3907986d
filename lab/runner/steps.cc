// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <thread>

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Result;

constexpr std::chrono::seconds kExitsWithin{5};

Deadline::Clock::duration duration(Seconds seconds) {
  return std::chrono::duration_cast<Deadline::Clock::duration>(std::chrono::duration<double>(seconds));
}

StepOutcome failed(std::string difference) { return {{}, std::nullopt, {std::move(difference)}}; }

/// The body of a machine is its pid 1 and sees its /dev/shm as it is.
std::vector<std::string> shm_names() {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", failure)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has_sanitizer_report(const CommandResult& result) {
  constexpr std::array<std::string_view, 4> kMarks{"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                                                   "runtime error:", "SUMMARY: UndefinedBehaviorSanitizer"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](std::string_view mark) { return result.err.find(mark) != std::string::npos; });
}

}  // namespace

StepOutcome StepRunner::execute(const Step& step) {
  step_name_ = step.name;
  return std::visit([this](const auto& verb) { return execute(verb); }, step.verb);
}

StepOutcome StepRunner::execute(const verb::Signal& signal) {
  StepOutcome outcome;
  for (const auto& target : signal.to) {
    const std::string name = target.group ? "group:" + target.name : target.name;
    const auto sent = machine_.send_signal(name, signal.number);
    if (!sent)
      outcome.differences.push_back(fmt::format("signal: {} to {}: {}", signal.word, name, sent.error().message));
  }
  return outcome;
}

StepOutcome StepRunner::execute(const verb::Exits& exits) {
  const Deadline deadline = Deadline::after(kExitsWithin);
  StepOutcome outcome;
  for (const std::string& glob : exits.names) {
    const auto names = machine_.expand(glob);
    if (!names) return failed("exits: " + names.error().message);
    for (const std::string& name : *names) {
      const auto ended = machine_.wait_exit(name, deadline);
      if (!ended && ended.error().code == vacate::ErrorCode::timed_out) {
        outcome.differences.push_back(
            fmt::format("exits: expected {} to end within {} s, it lives", name, kExitsWithin.count()));
      } else if (!ended) {
        outcome.differences.push_back(fmt::format("exits: {}: {}", name, ended.error().message));
      }
    }
  }
  return outcome;
}

StepOutcome StepRunner::execute(const verb::Sleep& sleep) {
  std::this_thread::sleep_for(duration(sleep.seconds));  // what the case asks for, not a wait for something
  return {};
}

StepOutcome StepRunner::execute(const verb::Start& start) {
  const auto started = machine_.start_later(start.names);
  return started ? StepOutcome{} : failed("start: " + started.error().message);
}

StepOutcome StepRunner::execute(const verb::PidReuse& reuse) {
  const auto started = machine_.start_later({reuse.by}, reuse.of);
  return started ? StepOutcome{} : failed("pid_reuse: " + started.error().message);
}

std::vector<std::string> with_scan(std::vector<std::string> argv, const std::string& method) {
  static const std::set<std::string> kLooking = {"status", "free", "wait", "why", "run", "doctor", "record", "shm"};
  if (method.empty() || argv.empty() || argv.front() != "vacate") return argv;
  std::size_t at = 1;  // a mere `vacate` is a status, as is one with options alone
  if (argv.size() > 1 && !argv[1].starts_with('-')) {
    if (!kLooking.contains(argv[1])) return argv;
    at = argv[1] == "shm" && argv.size() > 2 && !argv[2].starts_with('-') ? 3 : 2;
  } else if (argv.size() > 1 && (argv[1] == "--help" || argv[1] == "--version")) {
    return argv;
  }
  argv.insert(argv.begin() + static_cast<std::ptrdiff_t>(at), {"--scan", method});
  return argv;
}

StepOutcome StepRunner::execute(const verb::Run& run) {
  auto running = start(run);
  if (!running) return failed("run: " + running.error().message);
  if (run.background.empty()) return collect(std::move(*running), run.expect);
  StepOutcome outcome{running->argv, std::nullopt, {}};
  background_.insert_or_assign(run.background, std::move(*running));
  return outcome;
}

StepOutcome StepRunner::execute(const verb::Finish& finish) {
  const auto found = background_.find(finish.background);
  if (found == background_.end()) return failed(fmt::format("finish: '{}' is not running", finish.background));
  Running running = std::move(found->second);
  background_.erase(found);
  return collect(std::move(running), finish.expect);
}

Result<StepRunner::Running> StepRunner::start(const verb::Run& run) {
  CommandSpec spec;
  for (const std::string& word : run.argv) {
    // What is saved is for a later command to read: it stays JSON.
    if (options_.audience == Audience::people && word == "--json" && run.save.empty()) continue;
    auto final_word = with_pids(word, pid_lookup());
    if (!final_word) return final_word.error();
    spec.argv.push_back(std::move(*final_word));
  }
  spec.user = word_of(run.user);
  if (spec.user.empty() || spec.user == "root") spec.argv = with_scan(std::move(spec.argv), options_.scan);
  spec.tty = run.tty;
  spec.stdin_text = run.input;
  spec.child_of = run.child_of;
  spec.in_pidns = run.in_pidns;
  auto before = statuses();
  if (!before) return before.error();
  const auto begin = Deadline::Clock::now();
  const auto id = machine_.start_command(spec);
  if (!id) return id.error();
  return Running{*id, begin, std::move(*before), std::move(spec.argv), run.save};
}

StepOutcome StepRunner::collect(Running running, const Expectations& expect) {
  auto wanted = final_expectations(expect);
  const auto limit = duration(expect.within * options_.time_scale);
  auto result = machine_.finish_command(running.id, Deadline::at(running.begin + limit));
  StepOutcome outcome{running.argv, std::nullopt, {}};
  if (!wanted) outcome.differences.push_back(wanted.error().message);
  if (!result) outcome.differences.push_back("run: " + result.error().message);
  if (!outcome.differences.empty()) return outcome;
  auto seen = observe(running, std::move(*result));
  if (!seen) {
    outcome.differences.push_back(seen.error().message);
    return outcome;
  }
  outcome.differences = differences(*wanted, *seen, case_.shms);
  if (options_.sanitized && has_sanitizer_report(seen->result)) {
    outcome.differences.emplace_back("sanitizer: expected no report, found one on standard error");
  }
  if (!step_name_.empty()) earlier_[step_name_] = seen->result.out;
  if (!running.save.empty() && !(std::ofstream(running.save, std::ios::binary) << seen->result.out)) {
    outcome.differences.push_back(fmt::format("save: cannot write {}", running.save));
  }
  outcome.command = std::move(seen->result);
  return outcome;
}

Result<Observation> StepRunner::observe(const Running& running, CommandResult result) {
  Observation seen;
  seen.result = std::move(result);
  auto used = machine_.used_mib();  // first: memory may still be falling
  auto after = statuses();
  if (!used) return used.error().within("used");
  if (!after) return after.error();
  seen.used = std::move(*used);
  seen.after = std::move(*after);
  seen.before = running.before;
  seen.shm = shm_names();
  seen.earlier = earlier_;
  return seen;
}

Result<Expectations> StepRunner::final_expectations(Expectations expect) const {
  if (options_.audience == Audience::people) {
    expect.json.clear();
    expect.json_same.clear();
    expect.same_bytes_as.clear();
    expect.has.clear();  // written for the output with --json
    expect.lacks.clear();
  }
  expect.within *= options_.time_scale;
  return with_pids(std::move(expect), pid_lookup());
}

PidOf StepRunner::pid_lookup() const {
  return [this](std::string_view name) -> Result<long> {
    const auto status = machine_.actor(name);
    if (!status) return status.error();
    if (status->pid == 0) {
      return vacate::Error{vacate::ErrorCode::malformed, fmt::format("{{pid:{}}}: it has not been started", name)};
    }
    return long{status->pid};
  };
}

Result<std::vector<ActorStatus>> StepRunner::statuses() const {
  std::vector<ActorStatus> result;
  const auto names = machine_.expand("*");
  if (!names) return result;  // nobody has been started yet
  for (const std::string& name : *names) {
    auto status = machine_.actor(name);
    if (!status) return status.error();
    result.push_back(std::move(*status));
  }
  return result;
}

}  // namespace lab
