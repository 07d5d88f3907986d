// SPDX-License-Identifier: Apache-2.0
#include "app/run.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "app/gpu_locks.h"
#include "app/spare_mps.h"
#include "base/deadline.h"
#include "execute/keeper.h"
#include "execute/machine_log.h"
#include "execute/wait.h"
#include "os/signal_relay.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;

/// Signals by which somebody who waits for the end of vacate says that it takes too long.
bool is_impatient(int number) { return number == SIGTERM || number == SIGINT || number == SIGQUIT || number == SIGHUP; }

class RunConduct {
 public:
  RunConduct(const RunRequest& request, const RunTools& tools, const Policy& policy, UsedGpus gpus,
             std::vector<int> handed_on)
      : tools_(tools), gpus_(std::move(gpus)), command_{request.argv,
                                                        tools.inherited,
                                                        std::move(handed_on),
                                                        request.grace,
                                                        request.check.timeout,
                                                        [&policy](ActionLog& log) { return spare_mps(policy, log); }} {
    outcome_.argv = request.argv;
  }

  [[nodiscard]] RunOutcome run();

 private:
  void make_group();
  void attend(Keeper& keeper, SignalRelay& relay);
  void pass_on(const Keeper& keeper, RelayedSignal signal);
  void note(const KeeperEvent& event, Keeper& keeper, SignalRelay& relay);
  void note_files(pid_t keeper);
  void take_end(EndOfFamily end);
  void take_over(std::optional<SignalRelay>& relay);
  [[nodiscard]] const ControlGroup* group() const { return group_ ? &*group_ : nullptr; }

  const RunTools& tools_;
  UsedGpus gpus_;
  CommandToRun command_;
  RunOutcome outcome_;
  std::optional<ControlGroup> group_;
  std::chrono::milliseconds pause_{100};
  Deadline look_at_files_ = Deadline::after(pause_);
  bool ending_ = false;
  bool done_ = false;
  bool lost_keeper_ = false;
};

void RunConduct::make_group() {
  auto made = ControlGroup::create_below_own(fmt::format("vacate-run-{}", getpid()));
  if (made)
    group_.emplace(*std::move(made));
  else
    outcome_.no_control_group = made.error().message;
}

void RunConduct::pass_on(const Keeper& keeper, RelayedSignal signal) {
  if (ending_) {
    if (is_impatient(signal.number)) keeper.hurry();
  } else if (signal.number == SIGCONT) {
    keeper.resume();
  } else {
    keeper.pass_on(signal.number, signal.to_group ? Keeper::Reached::own_group : Keeper::Reached::nobody);
  }
}

void RunConduct::note(const KeeperEvent& event, Keeper& keeper, SignalRelay& relay) {
  switch (event.kind) {
    case KeeperEvent::Kind::started:
      outcome_.pid = event.pid;
      if (group_ && event.number != 0) outcome_.control_group = group_->path();
      if (group_ && event.number == 0) outcome_.no_control_group = "it could not be joined";
      if (tools_.on_started) tools_.on_started();
      return;
    case KeeperEvent::Kind::not_started:
      outcome_.exec_errno = event.number;
      outcome_.exec_problem = system_error("cannot be started", event.number).message;
      done_ = true;
      return;
    case KeeperEvent::Kind::stopped:
      return relay.stop_like(event.number);
    case KeeperEvent::Kind::ended:
      outcome_.status = event.number;
      ending_ = true;
      if (event.somebody_left && gpus_.can_be_used()) gpus_.look_at_those_left(keeper.pid());
      return keeper.end_everybody();
    case KeeperEvent::Kind::all_ended:
      take_end(event.end);
      done_ = true;
      return;
    case KeeperEvent::Kind::keeper_gone:
      lost_keeper_ = done_ = true;
      return;
  }
}

void RunConduct::take_end(EndOfFamily end) {
  outcome_.record = end.record;
  outcome_.left = std::move(end);
}

/// A command that runs for days is not looked at ten times a second.
void RunConduct::note_files(pid_t keeper) {
  static constexpr std::chrono::seconds kLongestPause{30};
  gpus_.note_open_files(keeper);
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, kLongestPause);
  look_at_files_ = Deadline::after(pause_);
}

void RunConduct::attend(Keeper& keeper, SignalRelay& relay) {
  while (!done_) {
    std::vector<pollfd> entries = {{keeper.descriptor(), POLLIN, 0}, {relay.signals(), POLLIN, 0}};
    if (relay.witness() >= 0) entries.push_back({relay.witness(), POLLIN, 0});
    if (keeper.changes() >= 0) entries.push_back({keeper.changes(), POLLIN, 0});
    const auto due = relay.next_due();
    Deadline until = due ? Deadline::at(*due) : Deadline::never();
    if (!ending_ && gpus_.can_be_used()) until = Deadline::earlier(until, look_at_files_);
    (void)wait_for(entries, until);
    if (!ending_ && gpus_.can_be_used() && look_at_files_.passed()) note_files(keeper.pid());
    keeper.keep_running();
    relay.collect(keeper.pid());
    for (const auto signal : relay.take_due()) pass_on(keeper, signal);
    while (!done_) {
      const auto event = keeper.next_event();
      if (!event) break;
      note(*event, keeper, relay);
    }
  }
}

/// Somebody ended the keeper: everybody below it is vacate's own child now.
void RunConduct::take_over(std::optional<SignalRelay>& relay) {
  outcome_.failure = "its keeper was ended by somebody, so vacate ended everybody whom it kept";
  const int hurry = relay->signals();
  relay->end_witness();  // vacate's one other child
  MachineLog log;
  take_end(end_in_place_of_keeper(command_, group(), log, hurry));
}

RunOutcome RunConduct::run() {
  const auto started = Clock::now();
  std::optional<SignalRelay> relay;
  if (auto made = SignalRelay::start())
    relay.emplace(*std::move(made));
  else
    outcome_.failure = made.error().message;
  if (relay) {
    make_group();  // late: from its start on the keeper removes it, even if vacate is killed
    auto keeper = Keeper::start(command_, group());
    if (!keeper) outcome_.failure = keeper.error().message;
    if (keeper) attend(*keeper, *relay);
    if (keeper) keeper->dismiss();
    if (lost_keeper_) take_over(relay);
  }
  if (group_) (void)group_->remove();
  if (relay && outcome_.status) gpus_.verify(outcome_, relay->signals());
  outcome_.seconds = seconds_since(started);
  return std::move(outcome_);
}

std::string name_of(const GpuLocks::Busy& busy) {
  if (!busy.owner) return "another process";
  return fmt::format("process {} ({})", busy.owner->pid, busy.owner->command);
}

/// The locks of the GPUs that the command is to use; `first` looked which those are. No time limit: whoever has a lock
/// has it as long as a command runs. A signal ends vacate meanwhile, as nothing has been started.
Result<GpuLocks> take_turn_on(const UsedGpus& first, const RunRequest& request, const RunTools& tools) {
  static constexpr std::chrono::seconds kUntilAskedWhoHasIt{5};
  const auto gpus = first.chosen();
  if (gpus.empty()) return Error{ErrorCode::unsupported, "--lock: there is no GPU whose lock could be taken"};
  auto locks = GpuLocks::open(gpus);
  if (!locks) return locks.error().within("--lock");
  const std::string label = fmt::format("vacate run --lock -- {}", request.argv.front());
  std::string said;
  for (Deadline limit = Deadline::after(std::chrono::milliseconds{0});; limit = Deadline::after(kUntilAskedWhoHasIt)) {
    if (const auto taken = locks->take(label, limit, -1); !taken) return taken.error().within("--lock");
    const auto busy = locks->missing();
    if (!busy) return locks;
    const std::string line = fmt::format("waiting for {}, which has the lock of GPU {}", name_of(*busy), busy->index);
    if (line != said && tools.say) tools.say(line);
    said = line;
  }
}

}  // namespace

Result<RunOutcome> run_to_the_end(const RunRequest& request, const RunTools& tools, const Policy& policy) {
  std::optional<GpuLocks> locks;
  if (request.lock) {
    const auto first = UsedGpus::look_before(request.check, policy);
    if (!first) return first.error();
    auto taken = take_turn_on(*first, request, tools);
    if (!taken) return taken.error();
    locks = *std::move(taken);
  }
  auto gpus = UsedGpus::look_before(request.check, policy);  // whoever had the lock is gone by now
  if (!gpus) return gpus.error();
  return RunConduct(request, tools, policy, *std::move(gpus), locks ? locks->descriptors() : std::vector<int>{}).run();
}

}  // namespace vacate
