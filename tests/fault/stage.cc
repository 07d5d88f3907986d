// SPDX-License-Identifier: Apache-2.0
#include "stage.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "checks.h"
#include "lab/case/parse.h"
#include "lab/machine/files.h"
#include "lab/machine/machine.h"
#include "lab/runner/case_worker.h"

namespace fault {
namespace {

using vacate::Deadline;

constexpr const char* kTraceFile = "/tmp/trace";
constexpr std::chrono::milliseconds kLimit{40'000};
const std::vector<std::string> kCommand = {"vacate", "free", "--yes", "--json", "--grace", "1s", "--timeout", "8s"};

/// Memory of GPU 0 is all left over; on GPU 1 live work has 8100 MiB besides.
const std::vector<std::uint64_t> kFreeMib = {4, 8104};
const std::vector<std::string> kLeftovers = {"tp*", "mapped", "threaded", "heir"};
const std::vector<std::string> kBystanders = {"train", "ld*",  "persist", "monitor", "hub",    "kid",
                                              "zl",    "zkid", "zhub",    "orphan",  "server", "svc"};
constexpr const char* kMachine = R"(
title = "eight leftovers beside live work"
machine = { gpus = 2 }
[[unit]]
name = "llm.service"
main = "svc"
[[actor]]
name = "api"
argv = ["vllm", "serve"]
[[actor]]
name = "tp{i}"
count = 5
parent = "api"
title = "VLLM::Worker_TP{i}"
holds = [{ gpu = 0, memory = 1000 }, { gpu = 1, memory = 100 }]
[[actor]]
name = "mapped"
parent = "tp0"
holds = [{ gpu = 0, how = "mapped", from = "tp0" }]
[[actor]]
name = "threaded"
parent = "tp1"
argv = ["python3", "--parent=4711"]
holds = [{ gpu = 0, how = "thread", from = "tp1" }]
[[actor]]
name = "heir"
parent = "tp2"
holds = [{ how = "inherited", from = "tp2" }]
[[actor]]
name = "train"
argv = ["python3", "train.py"]
holds = [{ gpu = 1, memory = 2000 }]
[[actor]]
name = "ld{i}"
count = 2
parent = "train"
holds = [{ how = "inherited", from = "train" }]
[[actor]]
name = "persist"
parent = "init"
exe = "/usr/bin/nvidia-persistenced"
argv = ["/usr/bin/nvidia-persistenced", "--verbose"]
holds = [{ gpu = [0, 1], how = "files" }]
[[actor]]
name = "monitor"
parent = "init"
argv = ["python3", "gpu_log.py"]
holds = [{ gpu = [0, 1], how = "files" }]
[[actor]]
name = "hub"
parent = "init"
[[actor]]
name = "kid"
parent = "hub"
detached = true
pipe = true
session = true
holds = [{ gpu = 1, memory = 1100 }]
[[actor]]
name = "zl"
state = "zombie-leader"
[[actor]]
name = "zkid"
parent = "zl"
holds = [{ gpu = 1, memory = 1000 }]
[[actor]]
name = "zhub"
parent = "init"
state = "zombie-leader"
[[actor]]
name = "orphan"
parent = "zhub"
detached = true
pipe = true
session = true
holds = [{ gpu = 1, memory = 1000 }]
[[actor]]
name = "launcher"
argv = ["python3", "start_server.py"]
[[actor]]
name = "server"
parent = "launcher"
session = true
listen = 8090
holds = [{ gpu = 1, memory = 1000 }]
[[actor]]
name = "svc"
parent = "init"
argv = ["/opt/llm/server", "--parent=4711"]
cgroup = "/system.slice/llm.service"
holds = [{ gpu = 1, memory = 2000 }]
[[step]]
signal = { to = ["api", "launcher"], with = "KILL" }
[[step]]
exits = ["api", "launcher"]
)";

std::vector<lab::ActorStatus> status_of(lab::Machine& machine, const std::vector<std::string>& patterns) {
  std::vector<lab::ActorStatus> all;
  for (const auto& pattern : patterns)
    if (const auto names = machine.expand(pattern))
      for (const auto& name : *names)
        if (auto status = machine.actor(name)) all.push_back(*std::move(status));
  return all;
}

Scene look_at(lab::Machine& machine) {
  return {status_of(machine, kLeftovers), status_of(machine, kBystanders),
          machine.used_mib().value_or(std::vector<std::uint64_t>{})};
}

/// What came back from the machine's process.
class Handover {
 public:
  Handover() : file_(memfd_create("fault", MFD_CLOEXEC)) {}
  void say(std::string_view kind, std::string_view text) const {
    const auto line = fmt::format("{} {}\n", kind, vacate::printable(text, 2000));
    (void)!write(file_.get(), line.data(), line.size());
  }
  [[nodiscard]] std::string text() const { return lab::read_file(fmt::format("/proc/self/fd/{}", file_.get())); }

 private:
  vacate::UniqueFd file_;
};

std::optional<Call> parse_call(std::string_view text) {
  const auto words = vacate::split(text, ' ');
  if (words.size() != 5) return std::nullopt;
  Call call;
  call.key = {std::string(words[0]), std::string(words[1]),
              static_cast<unsigned>(vacate::parse_unsigned(words[2]).value_or(0))};
  call.thread_name = words[3];
  call.object = words[4];
  return call;
}

bool is_signal(const std::optional<Fault>& fault) {
  return fault &&
         (fault->act == Act::signal_before || fault->act == Act::signal_after || fault->act == Act::signal_twice);
}

/// The run as it is to be judged: what was spoilt on purpose is no fault of the program.
Observed observed_of(const lab::CommandResult& run, const Trouble& trouble, std::string_view trace) {
  const auto& fault = trouble.fault;
  Observed observed{run.exit_code, 0, 0, false, false, run.out, run.err};
  for (const auto line : vacate::split(trace, '\n'))
    if (line.starts_with("signalled ")) observed.signal = run.exit_code - 128;
  observed.is_output_spoilt = observed.was_starting = !trouble.around.empty();
  if (!fault) return observed;
  if (is_signal(fault) && fault->at.process == "0") observed.expected_signal = fault->value;
  const bool fails = fault->act == Act::fail || fault->act == Act::fail_from;
  observed.is_output_spoilt = fails && (fault->at.call == "write" || fault->at.call == "writev");
  observed.was_starting = fails;
  return observed;
}

void play_inside(lab::Machine& machine, const lab::Case& scenario, const Trouble& trouble, Record record,
                 const Handover& handover) {
  const auto& fault = trouble.fault;
  const auto started = machine.start_actors();
  if (!started) return handover.say("cannot", started.error().message);
  if (lab::run_steps(machine, scenario, {}) != 0) return handover.say("cannot", "the steps of the scene failed");
  lab::CommandSpec spec;
  spec.argv = {std::filesystem::read_symlink("/proc/self/exe"),
               "--trace",
               kTraceFile,
               fault ? to_text(*fault) : "none",
               std::to_string(kLimit.count()),
               record == Record::calls ? "calls" : "nothing"};
  if (!trouble.around.empty()) spec.argv.insert(spec.argv.end(), {"sh", "-c", trouble.around, "sh"});
  spec.argv.insert(spec.argv.end(), kCommand.begin(), kCommand.end());
  const Scene before = look_at(machine);
  const auto run = machine.run(spec, Deadline::after(kLimit + std::chrono::seconds(20)));
  const Scene after = look_at(machine);
  if (!run) return handover.say("cannot", run.error().message);
  const auto trace = lab::read_file(kTraceFile);
  for (const auto line : vacate::split(trace, '\n')) {
    const auto space = line.find(' ');
    if (space != std::string_view::npos) handover.say(line.substr(0, space), line.substr(space + 1));
  }
  for (const auto& line : judge(observed_of(*run, trouble, trace), before, after, kFreeMib))
    handover.say("wrong", line);
  handover.say("ended", fmt::format("exit {} {:.1f} s: {}", run->exit_code, run->seconds,
                                    vacate::printable(run->err + run->out, 1500)));
  spec.argv = kCommand;
  const auto again = machine.run(spec, Deadline::after(kLimit));
  if (!again) return handover.say("cannot", again.error().message);
  const Observed rerun{again->exit_code, again->signal, 0, false, false, again->out, again->err};
  for (const auto& line : judge_rerun(rerun, after, look_at(machine), kFreeMib)) handover.say("wrong", line);
}

Played parse_played(std::string_view text) {
  Played played;
  for (const auto line : vacate::split(text, '\n')) {
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const auto kind = line.substr(0, space);
    const std::string rest(line.substr(space + 1));
    if (kind == "wrong") played.wrong.push_back(rest);
    if (kind == "left") played.wrong.push_back("a child was left behind: " + rest);
    if (kind == "overdue") played.wrong.push_back("it did not end in time");
    if (kind == "reached") played.reached = rest == "1";
    if (kind == "ended") played.ended = rest;
    if (kind == "cannot") played.cannot = rest;
    if (auto call = kind == "call" ? parse_call(rest) : std::nullopt) played.calls.push_back(*std::move(call));
  }
  return played;
}

std::filesystem::path beside_us(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

}  // namespace

Played play(const Trouble& trouble, Record record) {
  Played played;
  const auto scenario = lab::parse_case(kMachine, "fault");
  if (!scenario) {
    played.cannot = scenario.error().message;
    return played;
  }
  const Handover handover;
  const lab::MachinePaths paths{beside_us("vacate"), beside_us("vacate-lab-actor"), "", beside_us("../lib/nvml")};
  const auto status = lab::run_in_machine(*scenario, paths, [&](lab::Machine& machine) {
    play_inside(machine, *scenario, trouble, record, handover);
    return 0;
  });
  played = parse_played(handover.text());
  if (!status) played.cannot = status.error().message;
  return played;
}

int trace_command(const std::vector<std::string>& words) {
  if (words.size() < 5) return 2;
  const auto fault = parse_fault(words[1]);
  const auto limit = std::chrono::milliseconds(vacate::parse_unsigned(words[2]).value_or(0));
  const std::vector<std::string> argv(words.begin() + 4, words.end());
  const Trace trace = run_traced(argv, fault, words[3] == "calls" ? Record::calls : Record::nothing, limit);
  std::string text = fmt::format("reached {}\n", trace.reached ? 1 : 0);
  if (trace.overdue) text += "overdue 1\n";
  for (const auto& name : trace.left) text += fmt::format("left {}\n", name);
  for (const auto& call : trace.calls)
    text += fmt::format("call {} {} {} {} {}\n", call.key.process, call.key.call, call.key.ordinal, call.thread_name,
                        call.object);
  const int signal = WIFSIGNALED(trace.status) ? WTERMSIG(trace.status) : 0;
  if (signal != 0) text += fmt::format("signalled {}\n", signal);
  (void)lab::write_file(words[0], text, 0644);
  if (WIFEXITED(trace.status)) return WEXITSTATUS(trace.status);
  return 128 + signal;
}

}  // namespace fault
