// SPDX-License-Identifier: Apache-2.0
#include "execute/end_descendants.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <map>

#include <fmt/format.h>

#include "base/deadline.h"
#include "execute/wait.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostNamed = 256;
constexpr int kPatientRounds = 3;  // of KILL, each with newcomers, before they are stopped first
constexpr int kMostPasses = 64;
constexpr const char* kBecause = "it descends from the command";
constexpr const char* kBecauseAllOfThem = "everybody in it descends from the command";
constexpr milliseconds kAfterKill{5000};
constexpr milliseconds kFirstPause{10}, kLongestPause{250};  // between looks for what was forked meanwhile

struct Pursued {
  EndedProcess end;
  std::optional<Clock::time_point> asked, killed;
  bool held = false;    ///< stopped, to be killed with the others
  bool spared = false;  ///< no signal may reach it
};

void reap() noexcept {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

/// The descriptor tells of ends only; which ones is asked otherwise.
void drain(int fd) noexcept {
  std::array<char, 4096> buffer{};
  while (fd >= 0 && is_readable(fd) && read(fd, buffer.data(), buffer.size()) > 0) continue;
}

class Ending {
 public:
  Ending(const EndRequest& request, ActionLog& log)
      : request_(request),
        log_(log),
        started_(Clock::now() + request.patience),
        deadline_(Deadline::at(started_ + std::max(request.timeout, request.grace + kAfterKill))) {}

  [[nodiscard]] EndOfFamily run();

 private:
  void look();
  void spare_whom_no_signal_may_reach();
  [[nodiscard]] bool is_anybody_spared() const;
  [[nodiscard]] bool are_all_spared(const Family& family) const;
  void ask_or_kill(const Descendant& descendant);
  void send(Pursued& target, int signal, std::string_view name);
  void kill_group(const Family& family);
  void hold_everybody();
  void kill_whole_group();
  void note_ends();
  [[nodiscard]] bool is_over() const {
    return hurried_ || Clock::now() >= started_ + request_.grace || deadline_.passed();
  }
  [[nodiscard]] bool is_due(const Descendant& descendant) const;
  void wait();
  [[nodiscard]] EndOfFamily report();

  const EndRequest& request_;
  ActionLog& log_;
  Clock::time_point started_;
  Deadline deadline_;
  PinSet pins_;
  std::map<ProcessKey, Pursued> targets_;
  milliseconds pause_ = kFirstPause;
  bool hurried_ = false;
  bool first_is_there_ = true;
  bool has_acted_ = false;
  unsigned asked_whom_to_spare_ = 0;  ///< once before TERM, once before KILL
  bool only_spared_are_left_ = false;
  int rounds_with_newcomers_ = 0;  ///< after the grace
  bool has_newcomers_ = false;     ///< in this round
};

void Ending::send(Pursued& target, int signal, std::string_view name) {
  const auto* process = pins_.find(target.end.key);
  if (process == nullptr) return;
  const IntendedAction action{Deed::signal, {}, 0, target.end.key, {}, std::string(name), target.end.title, {kBecause}};
  has_acted_ = true;
  const auto sent = recorded(log_, action, [&] { return process->send_signal(signal); });
  if (sent) {
    target.end.signals.emplace_back(name);
    return;
  }
  if (sent.error().code == ErrorCode::gone) return;
  target.end.status = sent.error().code == ErrorCode::denied ? StepStatus::denied : StepStatus::skipped;
  target.end.detail = sent.error().message;
}

/// While the command itself is there it is asked alone: it knows best how to end what it started.
bool Ending::is_due(const Descendant& descendant) const {
  if (request_.first == 0 || descendant.key.pid == request_.first || !first_is_there_) return true;
  return Clock::now() >= started_ + request_.grace / 2;
}

void Ending::ask_or_kill(const Descendant& descendant) {
  auto [found, is_new] = targets_.try_emplace(descendant.key);
  Pursued& target = found->second;
  if (is_new) target.end.key = descendant.key;
  target.end.title = descendant.stat.comm;
  if (target.spared) return;
  if (is_over()) {
    if (target.killed) return;
    send(target, SIGKILL, "KILL");
    target.killed = Clock::now();
    has_newcomers_ = has_newcomers_ || is_new;
    return;
  }
  if (target.asked || Clock::now() < started_ || !is_due(descendant)) return;
  target.asked = Clock::now();
  if (descendant.stat.is_exiting()) return;
  send(target, SIGTERM, "TERM");
  if (descendant.stat.state == 'T') send(target, SIGCONT, "CONT");
}

/// Where the kernel cannot, each has had its own KILL all the same.
void Ending::kill_whole_group() {
  const IntendedAction action{Deed::kill_cgroup, {}, 0, {}, request_.group->path(), "KILL", {}, {kBecauseAllOfThem}};
  has_acted_ = true;
  (void)recorded(log_, action, [&]() -> Result<void> {
    if (request_.group->kill_everybody()) return {};
    return Error{ErrorCode::unsupported, "this kernel cannot end a control group as a whole"};
  });
}

/// Frozen, nobody forks: if everybody in the group descends from the caller, the group is ended at one go. Otherwise
/// each is ended by its own descriptor, as those outside of the group are.
void Ending::kill_group(const Family& family) {
  if (request_.group == nullptr || family.members.empty()) return;
  const bool frozen = request_.group->freeze();
  const auto now = find_descendants(pins_);
  const auto members = request_.group->members();
  const bool all_ours = frozen && now && std::all_of(members.begin(), members.end(), [&](pid_t pid) {
                          return std::any_of(now->members.begin(), now->members.end(),
                                             [&](const Descendant& each) { return each.key.pid == pid; });
                        });
  if (now)
    for (const auto& descendant : now->members) ask_or_kill(descendant);
  if (all_ours && !members.empty() && !is_anybody_spared()) kill_whole_group();
  request_.group->thaw();
}

/// Who is killed makes room for another below a limit of processes; who is stopped does not, and forks no more. So
/// those that fork as fast as they are killed are stopped, until nobody is new, and then killed.
void Ending::hold_everybody() {
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const auto family = find_descendants(pins_);
    if (!family) return;
    bool is_still = true;
    for (const auto& descendant : family->members) {
      Pursued& target = targets_[descendant.key];
      if (target.held || target.killed || target.spared) continue;
      target.end.key = descendant.key;
      target.end.title = descendant.stat.comm;
      target.held = true;
      is_still = false;
      send(target, SIGSTOP, "STOP");
    }
    if (is_still) return;
  }
}

void Ending::spare_whom_no_signal_may_reach() {
  const unsigned due = is_over() ? 2 : Clock::now() >= started_ ? 1 : 0;
  if (!request_.find_spared || asked_whom_to_spare_ >= due) return;
  asked_whom_to_spare_ = due;
  for (auto& spared : request_.find_spared(log_)) {
    Pursued& target = targets_[spared.key];
    if (!target.end.signals.empty()) continue;  // too late, and not by us to be undone
    target.spared = true;
    target.end = std::move(spared);
    target.end.status = StepStatus::refused;
  }
}

bool Ending::is_anybody_spared() const {
  return std::any_of(targets_.begin(), targets_.end(), [](const auto& each) {
    return each.second.spared && each.second.end.status == StepStatus::refused;
  });
}

bool Ending::are_all_spared(const Family& family) const {
  return !family.incomplete && std::all_of(family.members.begin(), family.members.end(), [&](const Descendant& each) {
    const auto target = targets_.find(each.key);
    return target != targets_.end() && target->second.spared;
  });
}

void Ending::look() {
  spare_whom_no_signal_may_reach();
  if (is_over() && rounds_with_newcomers_ >= kPatientRounds) hold_everybody();
  const auto family = find_descendants(pins_);
  if (!family) return;
  has_newcomers_ = false;
  first_is_there_ = std::any_of(family->members.begin(), family->members.end(),
                                [&](const Descendant& each) { return each.key.pid == request_.first; });
  if (is_over()) kill_group(*family);
  for (const auto& descendant : family->members) ask_or_kill(descendant);
  if (has_newcomers_) ++rounds_with_newcomers_;
  only_spared_are_left_ = is_anybody_spared() && are_all_spared(*family);
}

void Ending::note_ends() {
  for (auto& [key, target] : targets_) {
    if (target.end.status == StepStatus::gone) continue;
    const auto* process = pins_.find(key);
    if (process != nullptr && !process->exited()) continue;
    target.end.status = target.end.signals.empty() ? StepStatus::already_gone : StepStatus::gone;
    const auto since = target.asked ? *target.asked : target.killed.value_or(Clock::now());
    target.end.seconds = seconds_since(since);
  }
}

void Ending::wait() {
  std::vector<pollfd> entries;
  for (const int fd : {request_.children, hurried_ ? -1 : request_.hurry})
    if (fd >= 0) entries.push_back({fd, POLLIN, 0});
  for (const auto& [key, target] : targets_)
    if (const auto* process = pins_.find(key); process != nullptr && !process->exited())
      entries.push_back({process->descriptor(), POLLIN, 0});
  Deadline until = Deadline::earlier(Deadline::after(pause_), deadline_);
  for (const auto due : {started_, started_ + request_.grace})
    if (due > Clock::now()) until = Deadline::earlier(until, Deadline::at(due));
  if (wait_for(entries, until)) return;
  pause_ = std::min(2 * pause_, kLongestPause);
}

EndOfFamily Ending::report() {
  EndOfFamily end;
  end.somebody_left = has_children();
  if (has_acted_) end.record = log_.outcome();
  for (auto& [key, target] : targets_) {
    if (target.end.status == StepStatus::already_gone) continue;  // it was about to end
    const bool is_left = target.end.status != StepStatus::gone;
    if (is_left && target.end.status == StepStatus::skipped) {
      target.end.status = StepStatus::timed_out;
      target.end.detail = "still there: KILL does not end it now";
    }
    end.somebody_left = end.somebody_left || is_left;
    if (is_left || end.processes.size() < kMostNamed)
      end.processes.push_back(std::move(target.end));
    else
      ++end.unnamed;
  }
  return end;
}

EndOfFamily Ending::run() {
  for (;;) {
    drain(request_.children);
    reap();
    note_ends();
    if (!has_children()) return report();
    if (deadline_.passed()) return report();
    if (is_readable(request_.hurry)) hurried_ = true;
    look();
    if (only_spared_are_left_ && is_over()) return report();  // until now they could end by themselves
    wait();
  }
}

}  // namespace

EndOfFamily end_descendants(const EndRequest& request, ActionLog& log) { return Ending(request, log).run(); }

}  // namespace vacate
