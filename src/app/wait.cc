// SPDX-License-Identifier: Apache-2.0
#include "app/wait.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "app/select.h"
#include "execute/wait.h"
#include "plan/narrowing.h"
#include "verify/judge_gate.h"
#include "verify/release_view.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;

constexpr Bytes kStir = mebibytes(1);  // smaller moves of the figure are no fall

constexpr milliseconds kLastAnswer{1000};  // past the command's own deadline the driver gets so much for its last one

milliseconds elapsed(Clock::time_point since) { return std::chrono::duration_cast<milliseconds>(Clock::now() - since); }

std::optional<milliseconds> elapsed(const std::optional<Clock::time_point>& since) {
  return since ? std::optional(elapsed(*since)) : std::nullopt;
}

/// What is remembered of one GPU from sample to sample.
struct Track {
  std::optional<Bytes> floor;
  std::optional<Clock::time_point> released, fell;
  Reading<Bytes> last_used;
  std::vector<pid_t> last_holders;
};

using Charged = std::set<std::pair<unsigned, pid_t>>;  ///< GPU and process

Charged charged(const std::vector<DriverCharge>& charges) {
  Charged pairs;
  for (const auto& charge : charges) pairs.insert({charge.gpu, charge.pid});
  return pairs;
}

class Wait {
 public:
  Wait(const WaitRequest& request, const std::vector<std::string>& gpu_words, const WaitTools& tools,
       const Policy& policy)
      : words_(gpu_words),
        tools_(tools),
        policy_(policy),
        hold_(std::max(request.hold, policy.sample_distance)),
        deadline_(request.timeout == milliseconds(0) ? Deadline::never() : Deadline::after(request.timeout)) {
    report_.request = request;
  }

  [[nodiscard]] Result<WaitReport> run();

 private:
  enum class Woken { by_time, by_end, by_caller };

  [[nodiscard]] Result<void> look();
  [[nodiscard]] Result<void> look_for(const Charged& newcomers, DriverSample sample);
  [[nodiscard]] Charged newcomers_in(Charged now, const Charged& known) const;
  [[nodiscard]] Result<void> take(Look look);
  /// Which GPUs are meant, once and for all as soon as the driver shows them: one that is lost later is not forgotten.
  [[nodiscard]] Result<void> resolve();
  [[nodiscard]] Result<void> reap_leftovers();
  [[nodiscard]] Result<void> sample();
  [[nodiscard]] Result<void> take_turn();
  void judge_all();
  void follow(Track& track, unsigned gpu);
  void count_time();
  void tell();
  [[nodiscard]] bool all_free() const;
  [[nodiscard]] bool has_new_leftover() const;
  void give_up_residue();
  [[nodiscard]] Woken rest();
  [[nodiscard]] Deadline next_sample() const;
  [[nodiscard]] bool may_look() const { return elapsed(looked_) >= kShareOfLooks * look_cost_; }
  [[nodiscard]] WaitReport finish(WaitVerdict verdict);

  const std::vector<std::string>& words_;
  const WaitTools& tools_;
  const Policy& policy_;
  milliseconds hold_;
  Deadline deadline_;
  Clock::time_point started_ = Clock::now();
  WaitReport report_;
  PinSet pins_;
  std::set<pid_t> ended_;  ///< of those in the way at the last look
  std::map<unsigned, Track> tracks_;
  std::set<std::pair<pid_t, std::uint64_t>> dealt_with_;  ///< leftovers that were to be ended once
  unsigned reaps_ = 0;
  std::vector<GpuGate> told_;
  bool has_told_ = false;
  bool is_resolved_ = false;
  bool has_turn_ = false;
  bool has_tried_ = false;
  bool has_last_look_ = false;
  bool wants_look_ = false;
  milliseconds distance_ = kFirstDistance;
  milliseconds look_cost_{0};
  Clock::time_point looked_, sampled_;
  std::optional<Clock::time_point> reopened_;
  std::optional<Clock::time_point> free_since_;
};

Result<void> Wait::resolve() {
  auto& selection = report_.request.selection;
  const auto& snapshot = report_.snapshot;
  if (is_resolved_) return {};
  is_resolved_ = snapshot.driver.state == DriverState::ok && !snapshot.gpus.empty();
  auto gpus = resolve_gpus(words_.empty() ? std::vector<std::string>{"all"} : words_, snapshot.gpus);
  // A driver that is not up yet does not show its GPUs: the word may be right.
  if (!gpus && snapshot.driver.state == DriverState::ok) return gpus.error();
  selection.all_gpus = false;
  selection.gpus = gpus ? std::move(*gpus) : std::vector<unsigned>{};
  if (has_told_) return {};
  if (auto checked = check_narrowing(snapshot, selection); !checked) return checked;
  report_.unmatched = unmatched_words(snapshot, report_.attribution, selection);
  return {};
}

/// Between two samples: has the figure fallen, has somebody gone, what is the least the GPU used by itself?
void Wait::follow(Track& track, unsigned gpu) {
  const auto& gpus = report_.snapshot.gpus;
  const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& each) { return each.index == gpu; });
  const auto used = at == gpus.end() ? Reading<Bytes>() : at->memory.used;
  const auto holders = pinning_holders(report_.attribution, gpu);
  if (used.known() && track.last_used.known() && *used + kStir <= *track.last_used) {
    track.fell = Clock::now();
    // Nobody is left and the figure still falls: a release under way that a baseline nobody measured would hide.
    if (holders.empty()) free_since_.reset();
  }
  track.last_used = used;
  if (!std::includes(holders.begin(), holders.end(), track.last_holders.begin(), track.last_holders.end()))
    track.released = Clock::now();
  track.last_holders = holders;
  for (const auto& account : report_.attribution.accounts) {
    if (account.index != gpu || !account.baseline.known()) continue;
    if (account.baseline->source == BaselineSource::assumed)
      track.floor = std::min(track.floor.value_or(account.baseline->amount), account.baseline->amount);
  }
}

void Wait::judge_all() {
  Sighting now{std::move(report_.snapshot), std::move(report_.attribution)};
  report_.gates.clear();
  for (const auto index : report_.request.selection.gpus) {
    const auto& track = tracks_[index];
    const GateMemory memory{track.floor, elapsed(track.released), elapsed(track.fell), elapsed(started_)};
    report_.gates.push_back(judge_gate(index, now, report_.request, memory, policy_));
  }
  report_.snapshot = std::move(now.snapshot);
  report_.attribution = std::move(now.attribution);
  report_.note.clear();
  if (report_.gates.empty())
    report_.note = report_.snapshot.driver.detail.empty() ? "no GPU is shown" : report_.snapshot.driver.detail;
}

bool Wait::all_free() const {
  return !report_.gates.empty() && std::all_of(report_.gates.begin(), report_.gates.end(),
                                               [](const GpuGate& gate) { return gate.state == GateState::free; });
}

void Wait::count_time() {
  if (!all_free())
    free_since_.reset();
  else if (!free_since_)
    free_since_ = sampled_;
}

/// Says what has changed since it was said last: states, and who is in the way.
void Wait::tell() {
  const auto same = [](const GpuGate& a, const GpuGate& b) {
    return a.index == b.index && a.state == b.state && a.in_the_way == b.in_the_way &&
           a.charged_unseen == b.charged_unseen && a.detail == b.detail;
  };
  report_.waited = seconds_since(started_);
  const auto& gates = report_.gates;
  if (!has_told_ || !std::equal(gates.begin(), gates.end(), told_.begin(), told_.end(), same)) {
    tools_.observer.on_change(report_);
    told_ = gates;
    has_told_ = true;
  }
  tools_.observer.on_sample(report_);
}

bool Wait::has_new_leftover() const {
  if (!tools_.reap || reaps_ >= policy_.max_rounds || (tools_.lock && !has_turn_)) return false;
  const auto way = in_the_way(report_);
  return std::any_of(way.begin(), way.end(), [&](const Holder* holder) {
    return holder->standing == Standing::leftover && !holder->protection &&
           !dealt_with_.contains({holder->key.pid, holder->key.start_ticks});
  });
}

/// Ends who is left over, once each: one that would not go is in the way like anybody else.
Result<void> Wait::reap_leftovers() {
  ++reaps_;
  static constexpr milliseconds kAtMost{60'000};  // as free's own --timeout
  const auto left = std::chrono::duration_cast<milliseconds>(deadline_.remaining());
  const auto limit = std::min(kAtMost, std::max(left, milliseconds(1)));
  std::vector<unsigned> gpus;
  for (const auto& gate : report_.gates) gpus.push_back(gate.index);
  tools_.observer.on_absence(limit);
  auto reaped = tools_.reap(gpus, limit);
  if (!reaped && reaped.error().code == ErrorCode::timed_out) return {};
  if (!reaped) return reaped.error();
  for (const auto* holder : in_the_way(report_)) dealt_with_.insert({holder->key.pid, holder->key.start_ticks});
  for (auto& result : reaped->results) report_.reaped.push_back(std::move(result));
  report_.interrupted_by = reaped->interrupted_by;
  return {};
}

Result<void> Wait::take(Look look) {
  report_.snapshot = look.scan.snapshot;
  report_.attribution = look.attribution;
  ended_.clear();
  if (auto resolved = resolve(); !resolved) return resolved;
  const auto& gpus = report_.snapshot.gpus;
  for (const auto& gpu : gpus) follow(tracks_[gpu.index], gpu.index);
  judge_all();
  count_time();
  tell();
  if (has_new_leftover()) {
    if (auto reaped = reap_leftovers(); !reaped) return reaped;
    distance_ = kFirstDistance;
    wants_look_ = true;
    return {};
  }
  pins_ = std::move(look.scan.pins);
  return {};
}

Result<void> Wait::look() {
  const auto before = Clock::now();
  Look look = tools_.look();
  looked_ = sampled_ = Clock::now();
  // A driver that does not answer in time costs time, but no work.
  look_cost_ = std::min(std::chrono::duration_cast<milliseconds>(looked_ - before), milliseconds(250));
  wants_look_ = false;
  return take(std::move(look));
}

/// Of `now` those on a GPU that is waited for whom the last look did not see charged there.
Charged Wait::newcomers_in(Charged now, const Charged& known) const {
  const auto& gpus = report_.request.selection.gpus;
  std::erase_if(now, [&](const auto& each) {
    return known.contains(each) || std::find(gpus.begin(), gpus.end(), each.first) == gpus.end();
  });
  return now;
}

/// Somebody has come while the condition held. Who is gone again when the machine has been looked at may have been
/// anybody: the count begins anew. Where memory alone decides, the figures of the sample do.
Result<void> Wait::look_for(const Charged& newcomers, DriverSample sample) {
  report_.snapshot.gpus = std::move(sample.gpus);
  judge_all();
  const bool had_memory = all_free();
  if (auto seen = look(); !seen) return seen;
  const auto there = charged(report_.snapshot.charges);
  const bool are_there = std::includes(there.begin(), there.end(), newcomers.begin(), newcomers.end());
  const bool held = report_.request.condition.kind == ConditionKind::idle ? are_there : had_memory;
  if (free_since_ && !held) free_since_ = sampled_;
  return {};
}

/// Memory of nobody may be kept by our own driver child, where persistence is not known to be on (facts.md 2.4).
void Wait::give_up_residue() {
  const auto is_stuck = [&](const GpuGate& gate) {
    const bool is_residue = gate.state == GateState::held_by_nobody || gate.state == GateState::cannot_tell;
    const auto& gpus = report_.snapshot.gpus;
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& each) { return each.index == gate.index; });
    return is_residue && gate.used.known() && gpu != gpus.end() && !gpu->persistence.value_or(false);
  };
  if (!tools_.reopen_driver || (reopened_ && elapsed(*reopened_) < kLookAtLeast)) return;
  if (std::none_of(report_.gates.begin(), report_.gates.end(), is_stuck)) return;
  reopened_ = Clock::now();
  tools_.reopen_driver();
}

/// Asks the driver only. Where what it says would change anything, the machine is looked at: a sample decides nothing.
Result<void> Wait::sample() {
  if (report_.snapshot.driver.state != DriverState::ok && tools_.revive_driver) tools_.revive_driver();
  give_up_residue();
  DriverSample sample = tools_.sample(Deadline::earlier(
      Deadline::after(policy_.driver_deadline), Deadline::at(std::max(deadline_.when(), Clock::now() + kLastAnswer))));
  const bool is_due = elapsed(looked_) >= kLookAtLeast || (wants_look_ && may_look());
  const auto now = charged(sample.charges);
  const auto known = charged(report_.snapshot.charges);
  // While the count runs a look is not put off, whatever it costs: the newcomer could be gone before it.
  if (free_since_)
    if (const auto newcomers = newcomers_in(now, known); !newcomers.empty())
      return look_for(newcomers, std::move(sample));
  const bool changed = sample.driver.state != report_.snapshot.driver.state || now != known;
  if (is_due || (changed && may_look())) return look();
  wants_look_ = wants_look_ || changed;
  sampled_ = Clock::now();
  if (!changed) report_.snapshot.gpus = std::move(sample.gpus);
  for (const auto& gpu : report_.snapshot.gpus) follow(tracks_[gpu.index], gpu.index);
  const auto before = report_.gates;
  judge_all();
  const auto same_state = [](const GpuGate& a, const GpuGate& b) { return a.index == b.index && a.state == b.state; };
  const bool differs =
      !std::equal(before.begin(), before.end(), report_.gates.begin(), report_.gates.end(), same_state);
  if (differs) return look();
  count_time();
  tell();
  return {};
}

/// While the condition holds, ten samples over --for; else ever more seldom.
Deadline Wait::next_sample() const {
  if (wants_look_) return Deadline::after(kFirstDistance);
  if (!free_since_) return Deadline::after(distance_);
  const auto pace = std::clamp(hold_ / 10, policy_.sample_distance, milliseconds(2000));
  return Deadline::earlier(Deadline::after(pace), Deadline::at(*free_since_ + hold_));
}

Wait::Woken Wait::rest() {
  std::vector<pollfd> entries = {{tools_.wake, POLLIN, 0}};
  std::vector<pid_t> pids = {0};
  for (const auto* holder : in_the_way(report_)) {
    if (ended_.contains(holder->key.pid)) continue;
    const auto* pin = pins_.find(holder->key);
    if (pin == nullptr) continue;
    entries.push_back({pin->descriptor(), POLLIN, 0});
    pids.push_back(holder->key.pid);
  }
  if (!wait_for(entries, Deadline::earlier(next_sample(), deadline_))) return Woken::by_time;
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].revents != 0) ended_.insert(pids[i]);
  return entries[0].revents != 0 ? Woken::by_caller : Woken::by_end;
}

/// Waits for the locks before anything else counts. Between tries whoever listens hears that the wait goes on.
Result<void> Wait::take_turn() {
  static constexpr milliseconds kTry{10'000};
  std::vector<Gpu> gpus;
  for (const auto& gate : report_.gates)
    for (const auto& gpu : report_.snapshot.gpus)
      if (gpu.index == gate.index) gpus.push_back(gpu);
  const bool is_first = told_.empty() || told_.front().state != GateState::locked;
  const auto until = is_first ? Deadline::at({}) : Deadline::earlier(deadline_, Deadline::after(kTry));
  auto busy = tools_.lock(gpus, until);
  if (!busy) return busy.error();
  free_since_.reset();
  has_turn_ = !*busy;
  if (has_turn_) return look();
  for (auto& gate : report_.gates) {
    gate.state = GateState::locked;
    gate.in_the_way.clear();
    gate.charged_unseen.clear();
    const auto& owner = (*busy)->owner;
    gate.detail =
        owner ? fmt::format("process {} ({}) has the lock of GPU {}", owner->pid, owner->command, (*busy)->index)
              : fmt::format("another process has the lock of GPU {}", (*busy)->index);
  }
  tell();
  return {};
}

WaitReport Wait::finish(WaitVerdict verdict) {
  report_.verdict = verdict;
  report_.waited = seconds_since(started_);
  return std::move(report_);
}

Result<WaitReport> Wait::run() {
  if (auto seen = look(); !seen) return seen.error();
  for (;;) {
    if (report_.interrupted_by != 0) return finish(WaitVerdict::timeout);
    const bool waits_for_turn = tools_.lock && !has_turn_ && is_resolved_;
    if (waits_for_turn && !(has_tried_ && deadline_.passed())) {
      has_tried_ = true;
      if (auto turn = take_turn(); !turn) return turn.error();
      continue;
    }
    if (free_since_ && elapsed(*free_since_) >= hold_ && !waits_for_turn) {
      // The verdict is given on a look, not on a sample.
      if (looked_ >= *free_since_ + hold_) return finish(WaitVerdict::free);
      if (auto seen = look(); !seen) return seen.error();
      continue;
    }
    if (deadline_.passed()) {
      const bool is_fresh = elapsed(looked_) < milliseconds(250) || report_.snapshot.driver.state != DriverState::ok;
      if (is_fresh || has_last_look_ || waits_for_turn) return finish(verdict_at_deadline(report_.gates));
      has_last_look_ = true;  // names that are told are of those who are still there
      if (auto seen = look(); !seen) return seen.error();
      continue;
    }
    const Woken woken = rest();
    if (woken == Woken::by_caller) return finish(WaitVerdict::timeout);
    if (woken == Woken::by_end) {
      distance_ = kFirstDistance;
      wants_look_ = true;
      continue;
    }
    distance_ = std::min(distance_ + distance_ / 2, kLongestDistance);
    if (auto seen = wants_look_ && may_look() ? look() : sample(); !seen) return seen.error();
  }
}

}  // namespace

Result<WaitReport> wait_for_gpus(const WaitRequest& request, const std::vector<std::string>& gpu_words,
                                 const WaitTools& tools, const Policy& policy) {
  return Wait(request, gpu_words, tools, policy).run();
}

}  // namespace vacate
