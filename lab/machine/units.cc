// SPDX-License-Identifier: Apache-2.0
// See units.h. The newest process with the name of a unit's `main` is its main process.
#include "lab/machine/units.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/actor/futex.h"
#include "lab/actor/signals.h"
#include "lab/machine/files.h"

namespace lab {
namespace {

using Clock = std::chrono::steady_clock;

// As systemd's StartLimitBurst and StartLimitIntervalSec, so that a main process that cannot start does not fill the
// board.
constexpr std::size_t kMostRestarts = 5;
constexpr auto kRestartWindow = std::chrono::seconds(10);

std::string control_group_of(const UnitSpec& spec) { return "/system.slice/" + spec.name; }

/// Everybody in the control group, and the main process, which may not have joined it yet.
void terminate(const std::string& control_group, pid_t main) {
  const std::string top = "/sys/fs/cgroup" + control_group;
  std::vector<std::string> groups{top};
  std::error_code problem;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top, problem)) {
    if (entry.is_directory(problem)) groups.push_back(entry.path());
  }
  std::set<pid_t> members;
  if (main > 1) members.insert(main);
  for (const std::string& group : groups) {
    const std::string list = read_file(group + "/cgroup.procs");
    for (const std::string_view line : vacate::split(list, '\n')) {
      if (const auto pid = vacate::parse_unsigned(line); pid && *pid > 1) members.insert(static_cast<pid_t>(*pid));
    }
  }
  for (const pid_t pid : members) kill(pid, SIGTERM);
}

std::uint64_t now_of(clockid_t clock) {
  timespec now{};
  (void)clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

/// Microseconds since `pid` started (field 22 of its stat, in clock ticks since the boot); 0: it is gone.
std::uint64_t age_of(pid_t pid) {
  static constexpr std::size_t kStartAfterName = 20;  // the name is field 2, and what follows it begins with a blank
  const std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
  const auto fields = vacate::split(std::string_view(stat).substr(stat.rfind(')') + 1), ' ');
  const auto ticks = fields.size() > kStartAfterName ? vacate::parse_unsigned(fields[kStartAfterName]) : std::nullopt;
  if (!ticks) return 0;
  return now_of(CLOCK_BOOTTIME) - *ticks * 1'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::optional<std::uint32_t> newest(const Board& board, std::string_view name) {
  for (std::uint32_t i = board.count(); i-- > 1;) {
    if (board.slot(i).kind.load() == SlotKind::actor && name == board.slot(i).name) return i;
  }
  return std::nullopt;
}

Units::Units(const std::vector<UnitSpec>& specs, Board board, StartAgain start_again)
    : specs_(specs), board_(board), start_again_(std::move(start_again)) {
  const bool restarts = std::any_of(specs.begin(), specs.end(), [](const UnitSpec& u) { return u.restart_always; });
  if (!restarts) return;
  const SignalsBlocked blocked;  // the reaping of pid 1 is for its first thread
  keeper_ = std::thread([this] { keep_running(); });
}

Units::~Units() {
  over_.store(true);
  futex_bump(board_.region().event);
  if (keeper_.joinable()) keeper_.join();
}

const UnitSpec* Units::spec(std::string_view name) const {
  const auto at = std::find_if(specs_.begin(), specs_.end(), [&](const UnitSpec& unit) { return unit.name == name; });
  return at == specs_.end() ? nullptr : &*at;
}

UnitView Units::view(const UnitSpec& spec) const {
  UnitView unit;
  unit.name = spec.name;
  unit.restart = spec.restart_always ? "always" : "no";
  unit.control_group = control_group_of(spec);
  const auto slot = newest(board_, spec.main);
  const bool lives = slot && board_.slot(*slot).pid.load() > 0 && board_.slot(*slot).status.load() == kNoStatus;
  unit.main_pid = lives ? board_.slot(*slot).pid.load() : 0;
  unit.active_state = lives ? "active" : "failed";
  unit.sub_state = lives ? "running" : "failed";
  if (const std::uint64_t age = lives ? age_of(unit.main_pid) : 0; age != 0) {
    unit.activated_real = now_of(CLOCK_REALTIME) - age;
    unit.activated_monotonic = now_of(CLOCK_MONOTONIC) - age;
  }
  return unit;
}

std::optional<UnitView> Units::find(std::string_view name) const {
  const UnitSpec* found = spec(name);
  return found != nullptr ? std::optional(view(*found)) : std::nullopt;
}

std::vector<UnitView> Units::all() const {
  std::vector<UnitView> views;
  for (const UnitSpec& unit : specs_) views.push_back(view(unit));
  return views;
}

bool Units::stop(std::string_view name) {
  const UnitSpec* found = spec(name);
  if (found == nullptr) return false;
  const std::lock_guard lock(mutex_);
  stopped_.insert(found->name);
  terminate(control_group_of(*found), await_main(*found));
  return true;
}

/// The main process; one that was forked just now and has yet to say its number is waited for.
pid_t Units::await_main(const UnitSpec& spec) const {
  const auto deadline = vacate::Deadline::after(std::chrono::seconds(1));
  for (;;) {
    const std::uint32_t seen = board_.region().event.load();
    const auto slot = newest(board_, spec.main);
    if (!slot || board_.slot(*slot).phase.load() == Phase::planned) return 0;
    const Slot& main = board_.slot(*slot);
    if (main.status.load() != kNoStatus || deadline.passed()) return 0;
    if (main.pid.load() > 0) return main.pid.load();
    futex_wait(board_.region().event, seen, deadline);
  }
}

/// One look at every unit that is to be kept running.
void Units::restart_ended(std::vector<Clock::time_point>& restarts) {
  const std::lock_guard lock(mutex_);  // until the fork is done: a stop in between would miss it
  for (const UnitSpec& unit : specs_) {
    const auto slot = newest(board_, unit.main);
    if (!unit.restart_always || !slot || board_.slot(*slot).status.load() == kNoStatus) continue;
    if (stopped_.contains(unit.name)) continue;
    const auto now = Clock::now();
    std::erase_if(restarts, [&](Clock::time_point when) { return now - when > kRestartWindow; });
    if (restarts.size() >= kMostRestarts) continue;
    restarts.push_back(now);
    start_again_(*slot);
  }
}

void Units::keep_running() {
  std::vector<Clock::time_point> restarts;
  while (!over_.load()) {
    const std::uint32_t seen = board_.region().event.load();
    restart_ended(restarts);
    if (!over_.load()) futex_wait(board_.region().event, seen, vacate::Deadline::never());
  }
}

}  // namespace lab
