// SPDX-License-Identifier: Apache-2.0
#include "execute/live_executor.h"

#include <algorithm>
#include <csignal>
#include <set>

#include <fmt/format.h>

#include "base/deadline.h"
#include "execute/families.h"
#include "execute/ladder.h"
#include "execute/mps_client.h"
#include "execute/unit_stops.h"
#include "execute/wait.h"
#include "model/origin.h"
#include "os/freezer.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;

/// One process to be ended.
struct Target {
  const Step* step = nullptr;
  const ProcessRef* process = nullptr;
  Condition condition = Condition::running;
  Progress rung;
  StepResult result;
  std::string remark;  ///< said in its result, whatever that is
  bool settled = false;
  bool awaits_unit = false;  ///< its unit is being stopped: no signal until that is over
  bool let_go = false;       ///< left alone, for it holds no GPU any more
  Clock::time_point since;   ///< of the first signal, or of the run before there is one
};

void settle(Target& target, StepStatus status, std::string detail = {}) {
  target.result.status = status;
  target.result.seconds = target.result.signals.empty() && status != StepStatus::gone ? 0 : seconds_since(target.since);
  target.result.detail = std::move(detail);
  if (!target.remark.empty()) target.result.detail += (target.result.detail.empty() ? "" : "; ") + target.remark;
  target.settled = true;
}

/// The step's process, pinned and unmistakable, or a settled result that says why there is none. What the scan did not
/// pin is never signalled: a pid that is opened only now may be somebody else's by now.
void find_process(Target& target, const PinSet& pins) {
  target.process = pins.find(target.step->key);
  if (target.process != nullptr) {
    if (target.process->exited()) settle(target, StepStatus::already_gone);
    return;
  }
  const auto now = ProcessRef::open(target.step->key.pid);
  if (now && now->key() == target.step->key)
    return settle(target, StepStatus::skipped, "the scan could not pin it, so it was not signalled");
  if (!now && now.error().code != ErrorCode::gone) return settle(target, StepStatus::skipped, now.error().message);
  if (!now) return settle(target, StepStatus::already_gone);
  settle(target, StepStatus::identity_changed,
         fmt::format("pid {} is {} now", target.step->key.pid, to_string(now->key())));
}

/// What was judged is so no more (refused), or whether it is cannot be told.
void leave_alone(Target& target, const Error& objection) {
  target.let_go = objection.code == ErrorCode::refused;
  settle(target, target.let_go ? StepStatus::identity_changed : StepStatus::skipped, objection.message);
}

StepStatus status_of(ErrorCode code) noexcept {
  if (code == ErrorCode::timed_out) return StepStatus::timed_out;
  return code == ErrorCode::denied ? StepStatus::denied : StepStatus::refused;
}

/// Whoever is ended was judged by its program too: one that is another since then was not (refused). Between the look
/// and the signal nothing but the call itself passes.
Result<void> send_unless_changed(const ProcessRef& process, int signal) {
  if (process.runs_another_program())
    return Error{ErrorCode::refused, "it runs another program than the one that was judged"};
  return process.send_signal(signal);
}

/// Who was in the unit when the plan was made, holders and the rest.
std::vector<ProcessKey> members_of(const UnitTarget& unit, const Snapshot& seen) {
  std::vector<ProcessKey> members;
  for (const auto& process : seen.processes)
    if (is_in_cgroup(process.cgroup, unit.control_group)) members.push_back(process.key);
  return members;
}

/// One run over one plan.
class Run {
 public:
  Run(const Plan& plan, const Snapshot& seen, const PinSet& pins, const StillHolds& still_holds,
      const ExecutionRules& rules, ActionLog& log, const std::string& bus_socket);

  [[nodiscard]] bool done() const { return alive() == 0; }
  [[nodiscard]] ExecutionProgress progress() const;
  /// What has to come before any signal.
  void end_mps_clients(Deadline deadline, int wake);
  /// After that: a server whose client could not be ended stays with it.
  void spare_mps_servers();
  void send_what_is_due();
  void collect_exits();
  /// Until a process ends, a signal is due, or the caller is to stop. False: it is to stop.
  [[nodiscard]] bool wait(Deadline deadline, int wake) const;
  [[nodiscard]] std::vector<StepResult> finish(std::string_view why);

 private:
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] std::optional<Clock::time_point> next_due() const;
  [[nodiscard]] std::optional<Clock::time_point> next_kill() const;
  void hold_before_kill();
  void ask_units();
  void collect_unit_stops();
  void follow_unit(Target& target);
  void thaw_who_was_asked();
  [[nodiscard]] bool is_ended_member(pid_t pid) const;
  [[nodiscard]] Result<void> check_reason(const Target& target) const;
  [[nodiscard]] Result<void> check_reason_of_relative(const Target& target) const;
  [[nodiscard]] bool is_asked_for_in_vain(const std::string& unit);
  void send(Target& target, int signal, std::string_view name);
  void advance(Target& target);
  void note_who_is_left();
  void hold_back_if_somebody_is_unpinned();

  const Snapshot* seen_;
  std::vector<Target> targets_;
  LadderTimes times_;
  UnitStops units_;
  std::set<std::string> thawed_;       ///< groups that were tried, with what came of it in their members' details
  std::vector<std::size_t> families_;  ///< of the targets
  const StillHolds& still_holds_;
  const Plan& plan_;
  ActionLog& log_;
};

Run::Run(const Plan& plan, const Snapshot& seen, const PinSet& pins, const StillHolds& still_holds,
         const ExecutionRules& rules, ActionLog& log, const std::string& bus_socket)
    : seen_(&seen),
      times_{rules, Clock::now(), std::nullopt},
      units_(bus_socket, rules.silence),
      families_(families_of(plan, seen)),
      still_holds_(still_holds),
      plan_(plan),
      log_(log) {
  targets_.reserve(plan.steps.size());
  for (const auto& step : plan.steps) {
    Target& target = targets_.emplace_back();
    target.step = &step;
    target.since = times_.first_term;
    target.rung.ask = step.ask;
    target.rung.term_only = step.terms.term_only;
    target.rung.grace = step.terms.grace;
    target.result.n = step.n;
    target.result.pid = step.key.pid;
    if (const auto* process = seen.find(step.key.pid); process != nullptr && process->key == step.key)
      target.condition = process->condition;
    if (step.action == Action::refuse)
      settle(target, StepStatus::refused, step.because.empty() ? step.rule : step.because.front());
    else if (!is_ending(step.action))
      settle(target, StepStatus::skipped, "not built yet");
    else
      find_process(target, pins);
    target.awaits_unit = step.action == Action::stop_unit && !target.settled;
  }
  hold_back_if_somebody_is_unpinned();
  note_who_is_left();
}

/// A part of a client's holders frees nothing (design.md, rule 4), and orphans whom nothing could be proven against any
/// more: a plan is carried out as a whole or not begun.
void Run::hold_back_if_somebody_is_unpinned() {
  const bool unpinned = std::any_of(targets_.begin(), targets_.end(), [](const Target& target) {
    return is_ending(target.step->action) && target.settled && target.result.status == StepStatus::skipped;
  });
  if (!unpinned) return;
  for (auto& target : targets_)
    if (!target.settled)
      settle(target, StepStatus::skipped, "not everybody who is to be ended could be held on to, so nobody was");
}

/// Once for each unit with somebody in it who holds a GPU; a unit all of whose holders have gone is left to its
/// manager. What is recorded is that the manager was asked: its answer comes beside whatever else is done.
void Run::ask_units() {
  for (const auto& target : targets_) {
    if (!target.awaits_unit || target.settled || units_.knows(target.step->unit->name)) continue;
    const auto& unit = *target.step->unit;
    if (is_asked_for_in_vain(unit.name)) continue;
    const IntendedAction action{Deed::stop_unit, plan_.id, target.step->n,     unit.main,
                                unit.name,       {},       target.step->title, target.step->because};
    (void)recorded(log_, action,
                   [&] { return units_.ask(unit, members_of(unit, *seen_)); });  // an error is its answer, too
  }
}

void Run::collect_unit_stops() {
  units_.advance();
  for (auto& target : targets_)
    if (target.awaits_unit && !target.settled) follow_unit(target);
}

/// What the manager's answer means for one process of the unit that is still there. Where the stop did not happen it is
/// not signalled either: it would only be started again. What a stop left over (KillMode=) is asked like anybody else.
void Run::follow_unit(Target& target) {
  const auto& unit = target.step->unit->name;
  const auto* answer = units_.answer(unit);
  if (answer == nullptr) return;
  switch (answer->end) {
    case UnitStopEnd::stopped:
      target.awaits_unit = false;
      if (target.process->exited()) settle(target, StepStatus::gone);
      return;
    case UnitStopEnd::denied:
      return settle(target, StepStatus::denied, fmt::format("stopping {} is not allowed: {}", unit, answer->detail));
    case UnitStopEnd::not_stopped:
    case UnitStopEnd::unreachable:
      return settle(target, StepStatus::timed_out, fmt::format("{} was not stopped: {}", unit, answer->detail));
    case UnitStopEnd::changed:
      // Not identity-changed: the process itself is the same and alive.
      return settle(target, StepStatus::skipped,
                    fmt::format("{} is not what was planned for: {}", unit, answer->detail));
  }
}

std::size_t Run::alive() const {
  return static_cast<std::size_t>(
      std::count_if(targets_.begin(), targets_.end(), [](const Target& target) { return !target.settled; }));
}

void Run::note_who_is_left() {
  const bool others = std::any_of(targets_.begin(), targets_.end(), [](const Target& target) {
    return !target.settled && target.rung.ask != Ask::after_others;
  });
  if (!others && !times_.others_gone) times_.others_gone = Clock::now();
}

/// A step that ends somebody rests on what he holds, and he may have let go since the scan (refused), also between TERM
/// and KILL. Who has ended is found out elsewhere.
Result<void> Run::check_reason(const Target& target) const {
  if (!target.step->holder) return check_reason_of_relative(target);
  const auto holds = still_holds_(target.step->key);
  if (!holds && holds.error().code != ErrorCode::gone) return Error{ErrorCode::io, holds.error().message};
  if (holds && !*holds) return Error{ErrorCode::refused, "it holds no GPU any more, so it was left alone"};
  return {};
}

/// For whose sake it ends: a holder of its family that holds still, or that ended or failed to in this run.
Result<void> Run::check_reason_of_relative(const Target& target) const {
  const auto family = families_[static_cast<std::size_t>(&target - targets_.data())];
  bool has_holders = false;
  std::optional<Error> unread;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const Target& other = targets_[i];
    if (families_[i] != family || !other.step->holder) continue;
    has_holders = true;
    if (other.let_go || !is_ending(other.step->action)) continue;
    const auto reason = other.settled ? Result<void>() : check_reason(other);
    if (reason) return {};
    if (reason.error().code != ErrorCode::refused) unread = reason.error();
  }
  if (!has_holders) return {};
  if (unread) return *unread;
  return Error{ErrorCode::refused, "nobody for whose sake it was to end holds a GPU any more, so it was left alone"};
}

/// Nobody in it holds a GPU any more: it is not stopped.
bool Run::is_asked_for_in_vain(const std::string& unit) {
  std::vector<std::pair<Target*, Error>> objections;
  for (auto& target : targets_) {
    if (!target.awaits_unit || target.settled || target.step->unit->name != unit) continue;
    const auto reason = check_reason(target);
    if (reason) return false;
    objections.emplace_back(&target, reason.error());
  }
  for (auto& [target, objection] : objections) leave_alone(*target, objection);
  return true;
}

void Run::send(Target& target, int signal, std::string_view name) {
  const Step& step = *target.step;
  const IntendedAction action{Deed::signal, plan_.id,          step.n,     step.key,
                              {},           std::string(name), step.title, step.because};
  // CONT only goes along with TERM, and whoever was stopped a moment ago has let go of nothing since.
  const auto& before = target.result.signals;
  const bool has_reason = signal == SIGCONT || (!before.empty() && before.back() == "STOP");
  std::optional<Error> objection;
  const auto sent = recorded(log_, action, [&] {
    if (const auto reason = has_reason ? Result<void>() : check_reason(target); !reason) objection = reason.error();
    return objection ? Result<void>(*objection) : send_unless_changed(*target.process, signal);
  });
  if (objection) return leave_alone(target, *objection);
  if (sent) {
    if (target.result.signals.empty()) target.since = Clock::now();
    target.result.signals.emplace_back(name);
    return;
  }
  if (sent.error().code == ErrorCode::refused)
    settle(target, StepStatus::identity_changed, sent.error().message);
  else if (sent.error().code == ErrorCode::gone)
    settle(target, target.result.signals.empty() ? StepStatus::already_gone : StepStatus::gone);
  else
    settle(target, sent.error().code == ErrorCode::denied ? StepStatus::denied : StepStatus::skipped,
           sent.error().message);
}

/// The next rung: TERM (and CONT, without which a stopped process never takes it), later KILL. A process that is on its
/// way out already is waited for, not signalled again (facts.md 3.6).
void Run::advance(Target& target) {
  if (target.rung.asked) {
    target.rung.killed = true;
    if (target.condition != Condition::exiting) send(target, SIGKILL, "KILL");
    return;
  }
  target.rung.asked = Clock::now();
  if (target.condition == Condition::exiting) return;
  if (times_.rules.escalation == Escalation::kill_at_once && !target.step->terms.any()) {
    target.rung.killed = true;
    return send(target, SIGKILL, "KILL");
  }
  send(target, SIGTERM, "TERM");
  if (!target.settled && target.condition == Condition::stopped) send(target, SIGCONT, "CONT");
}

/// Clients of MPS, through their control daemon. Who could not be ended that way is left alone: it is never signalled.
/// A daemon that has fallen silent is not asked about the next.
void Run::end_mps_clients(Deadline deadline, int wake) {
  static constexpr std::chrono::milliseconds kAnswer{5000};
  bool is_silent = false;
  for (auto& target : targets_) {
    if (target.settled || target.step->action != Action::terminate_client) continue;
    if (is_readable(wake)) return;
    const auto limit = Deadline::earlier(deadline, Deadline::after(kAnswer));
    if (is_silent) {
      settle(target, StepStatus::timed_out, "the MPS control daemon does not answer; it was not signalled");
      continue;
    }
    if (const auto reason = check_reason(target); !reason) {
      leave_alone(target, reason.error());
      continue;
    }
    const Step& step = *target.step;
    const IntendedAction action{Deed::terminate_client,
                                plan_.id,
                                step.n,
                                step.key,
                                fmt::format("MPS server {}", step.mps_server),
                                {},
                                step.title,
                                step.because};
    const auto ended =
        recorded(log_, action, [&] { return end_mps_contexts(*target.process, step.mps_server, *seen_, limit); });
    target.since = Clock::now();
    if (ended) {
      target.result.detail = "the MPS control daemon ended its contexts";
      target.rung.not_before = Clock::now() + times_.rules.patience;
      continue;
    }
    is_silent = ended.error().code == ErrorCode::timed_out;
    settle(target, status_of(ended.error().code), fmt::format("{}; it was not signalled", ended.error().message));
  }
}

/// A server goes after its clients, never before them (facts.md 1.8), and nobody else by the stop that would end it.
void Run::spare_mps_servers() {
  for (const auto& client : targets_) {
    const bool is_left = client.step->action == Action::terminate_client && client.settled &&
                         client.process != nullptr && !client.process->exited();
    if (!is_left) continue;
    const auto server = std::find_if(targets_.begin(), targets_.end(), [&](const Target& each) {
      return !each.settled && each.result.pid == client.step->mps_server;
    });
    if (server == targets_.end()) continue;
    const auto unit = server->step->unit;
    const auto why =
        fmt::format("process {} is a client of MPS still, whom its end would leave undefined", client.result.pid);
    settle(*server, StepStatus::refused, why);
    for (auto& other : targets_)
      if (unit && other.step->unit == unit && !other.settled) settle(other, StepStatus::refused, why);
  }
}

/// Copies that fork again as soon as one of them ends and leaves room under a limit of processes would outlast any
/// number of kills in turn: none of them runs any more when the first is killed. Safer than cgroup.kill, which ends
/// whoever is in the group at that moment, known or not.
void Run::hold_before_kill() {
  if (times_.rules.escalation != Escalation::kill_at_once) return;
  for (auto& target : targets_) {
    const bool is_next = !target.settled && !target.awaits_unit && !target.rung.asked && !target.step->terms.any();
    if (is_next && target.condition != Condition::exiting) send(target, SIGSTOP, "STOP");
  }
}

void Run::send_what_is_due() {
  ask_units();
  hold_before_kill();
  for (auto& target : targets_) {
    if (target.settled || target.awaits_unit) continue;
    const auto due = next_signal_at(target.rung, times_);
    if (due && *due <= Clock::now()) advance(target);
  }
  thaw_who_was_asked();
  note_who_is_left();
}

/// Alive, and one of those that end: as its descriptor pins it, whoever has its number is it.
bool Run::is_ended_member(pid_t pid) const {
  return std::any_of(targets_.begin(), targets_.end(), [&](const Target& target) {
    return target.result.pid == pid && !target.settled && !target.process->exited();
  });
}

/// A frozen group is thawed when TERM waits for each of its members, so that this is the first thing they see. A group
/// that somebody else has come into is left as it is.
void Run::thaw_who_was_asked() {
  for (const auto& target : targets_) {
    const auto& thaw = target.step->thaw;
    if (!thaw || target.settled || thawed_.contains(thaw->path)) continue;
    const auto is_pending = [&](const Target& other) {
      return other.step->thaw == thaw && !other.settled && !other.rung.asked;
    };
    if (std::any_of(targets_.begin(), targets_.end(), is_pending)) continue;
    thawed_.insert(thaw->path);
    const IntendedAction action{Deed::thaw, plan_.id, target.step->n,      std::nullopt, thaw->path,
                                {},         {},       target.step->because};
    const auto done = recorded(
        log_, action, [&] { return Freezers::read().thaw(*thaw, [this](pid_t pid) { return is_ended_member(pid); }); });
    if (done) continue;
    for (auto& other : targets_)
      if (other.step->thaw == thaw && !other.settled)
        other.remark = fmt::format("its control group was not thawed: {}", done.error().message);
  }
}

void Run::collect_exits() {
  for (auto& target : targets_)
    if (!target.settled && target.process->exited()) settle(target, StepStatus::gone, target.result.detail);
  collect_unit_stops();
  note_who_is_left();
}

std::optional<Clock::time_point> Run::next_due() const {
  std::optional<Clock::time_point> next = units_.next_due();
  for (const auto& target : targets_) {
    if (target.settled || target.awaits_unit) continue;
    const auto due = next_signal_at(target.rung, times_);
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

bool Run::wait(Deadline deadline, int wake) const {
  std::vector<pollfd> entries;
  for (const auto& target : targets_)
    if (!target.settled) entries.push_back({target.process->descriptor(), POLLIN, 0});
  units_.add_waits(entries);
  if (wake >= 0) entries.push_back({wake, POLLIN, 0});
  if (const auto due = next_due()) deadline = Deadline::earlier(deadline, Deadline::at(*due));
  wait_for(entries, deadline);
  return wake < 0 || (entries.back().revents & POLLIN) == 0;
}

ExecutionProgress Run::progress() const {
  ExecutionProgress progress;
  progress.alive = alive();
  progress.total = static_cast<std::size_t>(std::count_if(
      targets_.begin(), targets_.end(), [](const Target& target) { return is_ending(target.step->action); }));
  if (const auto due = next_kill()) {
    const auto left = std::max<Clock::duration>(*due - Clock::now(), Clock::duration::zero());
    progress.until_kill = std::chrono::duration_cast<std::chrono::milliseconds>(left);
  }
  return progress;
}

/// The next KILL that is certain to come, should its process not end before. One that has not been asked yet gets its
/// own later.
std::optional<Clock::time_point> Run::next_kill() const {
  std::optional<Clock::time_point> next;
  for (const auto& target : targets_) {
    if (target.settled || target.awaits_unit || !target.rung.asked) continue;
    const auto due = next_signal_at(target.rung, times_);
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

/// Whoever is still there did not end in time, and the result says how far the ladder went.
std::vector<StepResult> Run::finish(std::string_view why) {
  std::vector<StepResult> results;
  results.reserve(targets_.size());
  for (auto& target : targets_) {
    if (!target.settled && target.awaits_unit)
      settle(target, units_.was_asked(target.step->unit->name) ? StepStatus::timed_out : StepStatus::skipped,
             fmt::format("still there: {}; {}", why, units_.whereabouts(target.step->unit->name)));
    else if (!target.settled && target.result.signals.empty() && target.condition != Condition::exiting)
      settle(target, StepStatus::skipped, fmt::format("it was not its turn yet: {}", why));
    else if (!target.settled)
      settle(target, StepStatus::timed_out, fmt::format("still there: {}", why));
    results.push_back(std::move(target.result));
  }
  return results;
}

}  // namespace

std::vector<StepResult> LiveExecutor::execute(const Plan& plan, const Snapshot& seen, Deadline deadline) {
  Run run(plan, seen, pins_, still_holds_, rules_, log_, bus_socket_);
  run.end_mps_clients(deadline, wake_);
  run.spare_mps_servers();
  for (;;) {
    run.collect_exits();
    if (is_readable(wake_)) return run.finish("interrupted");
    if (run.done()) return run.finish("");
    if (deadline.passed()) return run.finish("the time limit passed");
    run.send_what_is_due();
    observer_.on_execution(run.progress());
    if (!run.done() && !run.wait(deadline, wake_)) return run.finish("interrupted");
  }
}

}  // namespace vacate
