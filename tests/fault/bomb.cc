// SPDX-License-Identifier: Apache-2.0
#include "bomb.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "checks.h"
#include "lab/case/parse.h"
#include "lab/machine/machine.h"
#include "lab/runner/case_worker.h"

namespace fault {
namespace {

using vacate::Deadline;

constexpr uid_t kBomber = 64321;  // nobody else has processes under this number
constexpr rlim_t kMostProcesses = 40;
constexpr int kSkip = 77;
constexpr double kLongest = 20;  // seconds: the time limit of the command, and room for a loaded machine
const std::vector<std::uint64_t> kFreeMib = {4, 2004};
constexpr const char* kMachine = R"(
title = "a fork bomb of holders"
machine = { gpus = 2 }
[[actor]]
name = "api"
[[actor]]
name = "tp0"
parent = "api"
holds = [{ gpu = 0, memory = 1000 }]
[[actor]]
name = "train"
holds = [{ gpu = 1, memory = 2000 }]
[[step]]
signal = { to = "api", with = "KILL" }
[[step]]
exits = "api"
)";

Scene look_at(lab::Machine& machine) {
  Scene scene;
  if (auto status = machine.actor("tp0")) scene.leftovers.push_back(*std::move(status));
  if (auto status = machine.actor("train")) scene.bystanders.push_back(*std::move(status));
  scene.used_mib = machine.used_mib().value_or(std::vector<std::uint64_t>{});
  return scene;
}

int complain(const std::string& line) {
  fmt::print("fork bomb: {}\n", line);
  std::fflush(stdout);
  return 1;
}

/// Until the bomb is as large as it may get: how many processes the user has.
bool is_full_grown(lab::Machine& machine) {
  lab::CommandSpec count;
  count.argv = {"sh", "-c", fmt::format("ps -o pid= -u {} | wc -l", kBomber)};
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (!deadline.passed()) {
    const auto said = machine.run(count, deadline);
    if (said && vacate::parse_unsigned(vacate::trim(said->out)).value_or(0) + 2 >= kMostProcesses) return true;
  }
  return false;
}

int play_inside(lab::Machine& machine, const lab::Case& scenario) {
  if (const auto started = machine.start_actors(); !started) return complain(started.error().message);
  if (lab::run_steps(machine, scenario, {}) != 0) return complain("the steps of the scene failed");
  lab::CommandSpec bomb;
  bomb.argv = {std::filesystem::read_symlink("/proc/self/exe"), "--be-bomb", std::to_string(machine.actor("tp0")->pid)};
  bomb.child_of = "tp0";
  if (const auto lit = machine.start_command(bomb); !lit) return complain(lit.error().message);
  if (!is_full_grown(machine)) return complain("it does not go off");
  const Scene before = look_at(machine);
  lab::CommandSpec spec;
  spec.argv = {"vacate", "free", "--yes", "--json", "--grace", "1s", "--timeout", "6s"};
  const auto run = machine.run(spec, Deadline::after(std::chrono::seconds(60)));
  if (!run) return complain(run.error().message);
  const Observed observed{run->exit_code, run->signal, 0, false, false, run->out, run->err};
  auto wrong = judge(observed, before, look_at(machine), kFreeMib);
  if (run->timed_out || run->seconds > kLongest) wrong.push_back(fmt::format("it took {:.1f} s", run->seconds));
  std::size_t steps = 0;
  for (auto at = run->out.find("\"signal\":\"TERM\""); at != std::string::npos; ++steps)
    at = run->out.find("\"signal\":\"TERM\"", at + 1);
  if (steps < kMostProcesses / 2) wrong.push_back(fmt::format("only {} of the bomb were seen to hold it", steps));
  for (const auto& line : wrong) complain(line);
  fmt::print("fork bomb: {} asked to end, exit {} after {:.1f} s\n", steps, run->exit_code, run->seconds);
  std::fflush(stdout);
  return wrong.empty() ? 0 : 1;
}

/// Copies of the GPU files of `pid`, under whatever numbers.
bool take_files(pid_t pid) {
  const vacate::UniqueFd target(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  DIR* listing = opendir(folder.c_str());
  bool any = false;
  while (const dirent* entry = listing != nullptr ? readdir(listing) : nullptr) {
    std::array<char, 64> link{};
    const std::string name = folder + "/" + static_cast<const char*>(entry->d_name);
    if (readlink(name.c_str(), link.data(), link.size() - 1) <= 0) continue;
    if (!std::string_view(link.data()).starts_with("/dev/nvidia")) continue;
    const auto number = static_cast<int>(vacate::parse_unsigned(entry->d_name).value_or(0));
    any = syscall(SYS_pidfd_getfd, target.get(), number, 0) >= 0 || any;
  }
  if (listing != nullptr) closedir(listing);
  return any;
}

}  // namespace

int play_bomb() {
  if (geteuid() != 0) {
    fmt::print("skipped: needs root\n");
    return kSkip;
  }
  const auto scenario = lab::parse_case(kMachine, "bomb");
  if (!scenario) return complain(scenario.error().message);
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const lab::MachinePaths paths{here / "vacate", here / "vacate-lab-actor", "", here / "../lib/nvml"};
  const auto status =
      lab::run_in_machine(*scenario, paths, [&](lab::Machine& machine) { return play_inside(machine, *scenario); });
  if (status) return *status;
  const bool skip = status.error().code == vacate::ErrorCode::unsupported;
  fmt::print("{}{}\n", skip ? "skipped: " : "the lab broke: ", status.error().message);
  return skip ? kSkip : 1;
}

int be_bomb(const std::vector<std::string>& words) {
  const auto pid = words.empty() ? std::nullopt : vacate::parse_unsigned(words[0]);
  const rlimit few{kMostProcesses, kMostProcesses};
  if (!pid || !take_files(static_cast<pid_t>(*pid)) || setrlimit(RLIMIT_NPROC, &few) != 0 ||
      setresuid(kBomber, kBomber, kBomber) != 0)
    return 1;
  (void)std::signal(SIGCHLD, SIG_IGN);  // the kernel reaps
  for (;;) {
    static constexpr int kPause = 2;  // milliseconds
    (void)fork();
    (void)poll(nullptr, 0, kPause);
  }
}

}  // namespace fault
