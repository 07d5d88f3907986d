// SPDX-License-Identifier: Apache-2.0
#include "execute/live_executor.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "execute/ladder.h"
#include "execute/mps_client.h"
#include "execute/wait.h"

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
  bool settled = false;
  Clock::time_point since;  ///< of the first signal, or of the run before there is one
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void settle(Target& target, StepStatus status, std::string detail = {}) {
  target.result.status = status;
  target.result.seconds = target.result.signals.empty() && status != StepStatus::gone ? 0 : seconds_since(target.since);
  target.result.detail = std::move(detail);
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

StepStatus status_of(ErrorCode code) noexcept {
  if (code == ErrorCode::timed_out) return StepStatus::timed_out;
  return code == ErrorCode::denied ? StepStatus::denied : StepStatus::refused;
}

/// One run over one plan.
class Run {
 public:
  Run(const Plan& plan, const Snapshot& seen, const PinSet& pins, const ExecutionRules& rules, ActionLog& log);

  [[nodiscard]] bool done() const { return alive() == 0; }
  [[nodiscard]] ExecutionProgress progress() const;
  /// What has to come before any signal.
  void end_mps_clients(Deadline deadline, int wake);
  void send_what_is_due();
  void collect_exits();
  /// Until a process ends, a signal is due, or the caller is to stop. False: it is to stop.
  [[nodiscard]] bool wait(Deadline deadline, int wake) const;
  [[nodiscard]] std::vector<StepResult> finish(std::string_view why);

 private:
  [[nodiscard]] std::size_t alive() const;
  [[nodiscard]] std::optional<Clock::time_point> next_due() const;
  [[nodiscard]] std::optional<Clock::time_point> next_kill() const;
  void send(Target& target, int signal, std::string_view name);
  void advance(Target& target);
  void note_who_is_left();
  void hold_back_if_somebody_is_unpinned();

  const Snapshot* seen_;
  std::vector<Target> targets_;
  LadderTimes times_;
  const Plan& plan_;
  ActionLog& log_;
};

Run::Run(const Plan& plan, const Snapshot& seen, const PinSet& pins, const ExecutionRules& rules, ActionLog& log)
    : seen_(&seen), times_{rules, Clock::now(), std::nullopt}, plan_(plan), log_(log) {
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
  }
  hold_back_if_somebody_is_unpinned();
  note_who_is_left();
}

/// A part of a client's holders frees nothing (design.md, rule 4), and orphans whom nothing could be proven against any
/// more: a plan is carried out as a whole or not begun.
void Run::hold_back_if_somebody_is_unpinned() {
  const bool unpinned = std::any_of(targets_.begin(), targets_.end(), [](const Target& target) {
    return target.step->action == Action::signal && target.settled && target.result.status == StepStatus::skipped;
  });
  if (!unpinned) return;
  for (auto& target : targets_)
    if (!target.settled)
      settle(target, StepStatus::skipped, "not everybody who is to be ended could be held on to, so nobody was");
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

void Run::send(Target& target, int signal, std::string_view name) {
  const Step& step = *target.step;
  const IntendedAction action{Deed::signal, plan_.id,          step.n,     step.key,
                              {},           std::string(name), step.title, step.because};
  const auto sent = recorded(log_, action, [&] { return target.process->send_signal(signal); });
  if (sent) {
    if (target.result.signals.empty()) target.since = Clock::now();
    target.result.signals.emplace_back(name);
    return;
  }
  if (sent.error().code == ErrorCode::gone)
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

void Run::send_what_is_due() {
  for (auto& target : targets_) {
    if (target.settled) continue;
    const auto due = next_signal_at(target.rung, times_);
    if (due && *due <= Clock::now()) advance(target);
  }
  note_who_is_left();
}

void Run::collect_exits() {
  for (auto& target : targets_)
    if (!target.settled && target.process->exited()) settle(target, StepStatus::gone, target.result.detail);
  note_who_is_left();
}

std::optional<Clock::time_point> Run::next_due() const {
  std::optional<Clock::time_point> next;
  for (const auto& target : targets_) {
    if (target.settled) continue;
    const auto due = next_signal_at(target.rung, times_);
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

bool Run::wait(Deadline deadline, int wake) const {
  std::vector<pollfd> entries;
  for (const auto& target : targets_)
    if (!target.settled) entries.push_back({target.process->descriptor(), POLLIN, 0});
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
    if (target.settled || !target.rung.asked) continue;
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
    if (!target.settled && target.result.signals.empty() && target.condition != Condition::exiting)
      settle(target, StepStatus::skipped, fmt::format("it was not its turn yet: {}", why));
    else if (!target.settled)
      settle(target, StepStatus::timed_out, fmt::format("still there: {}", why));
    results.push_back(std::move(target.result));
  }
  return results;
}

}  // namespace

std::vector<StepResult> LiveExecutor::execute(const Plan& plan, const Snapshot& seen, Deadline deadline) {
  Run run(plan, seen, pins_, rules_, log_);
  run.end_mps_clients(deadline, wake_);
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
