// SPDX-License-Identifier: Apache-2.0
#include "verify/judge_gate.h"

#include <algorithm>

#include <fmt/format.h>

#include "attribute/accounts.h"
#include "attribute/charges.h"
#include "plan/narrowing.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

bool is_named(const std::vector<ProcessSelector>& selectors, const ProcessKey& key) {
  return std::any_of(selectors.begin(), selectors.end(),
                     [&](const ProcessSelector& selector) { return selector.matches(key); });
}

bool is_ignored(const ProcessKey& key, const Snapshot& snapshot, const WaitRequest& request) {
  if (is_named(request.ignored_pids, key)) return true;
  if (request.ignored_units.empty()) return false;
  Selection units;
  units.units = request.ignored_units;
  return is_within(snapshot, key.pid, units);
}

const HolderOnGpu* place_of(const Holder& holder, unsigned gpu) {
  const auto at = std::find_if(holder.gpus.begin(), holder.gpus.end(),
                               [&](const HolderOnGpu& place) { return place.index == gpu; });
  return at == holder.gpus.end() ? nullptr : &*at;
}

/// Has it more than device files on this GPU? A CUDA process keeps the nodes of GPUs open that it has no context on;
/// where the driver's lists can be trusted they tell.
bool has_part_in(const Holder& holder, const HolderOnGpu& place, const Snapshot& snapshot) {
  if (!holder.pins_memory()) return false;
  return holder.role != HolderRole::context || place.has_context || !can_trust_lists(snapshot);
}

Reading<Bytes> sum(const Reading<Bytes>& a, const Reading<Bytes>& b) {
  if (!a.known()) return a;
  return b.known() ? Reading<Bytes>(*a + *b) : b;
}

/// Whoever is on one GPU, sorted into those who count and the memory of those who do not.
struct Sides {
  std::vector<pid_t> counting;       ///< with a context or memory here, sorted
  std::vector<pid_t> unseen;         ///< charged here, and nobody seen answers for it, sorted
  Reading<Bytes> exempt = Bytes{0};  ///< charged to those who do not count
  bool has_exempt = false;           ///< one of them has a context or memory here
};

class Judge {
 public:
  Judge(unsigned index, const Sighting& now, const WaitRequest& request, const GateMemory& memory, const Policy& policy)
      : index_(index), now_(now), request_(request), memory_(memory), policy_(policy) {}

  [[nodiscard]] GpuGate run();

 private:
  [[nodiscard]] bool is_exempt(const Holder& holder) const;
  [[nodiscard]] bool is_exempt(const UntiedCharge& charge) const;
  void sort_holders();
  void sort_untied();
  void judge_idle();
  void judge_amount();
  void judge_excess();
  [[nodiscard]] bool may_be_releasing() const;
  [[nodiscard]] bool could_be_held_unseen() const;
  [[nodiscard]] Reading<Bytes> baseline() const;
  [[nodiscard]] Reading<Bytes> limit() const;
  void say(GateState state, std::string detail = {}) {
    gate_.state = state;
    gate_.detail = std::move(detail);
  }

  unsigned index_;
  const Sighting& now_;
  const WaitRequest& request_;
  const GateMemory& memory_;
  const Policy& policy_;
  Sides sides_;
  GpuGate gate_;
};

bool Judge::is_exempt(const Holder& holder) const {
  if (!counts(holder, now_.snapshot, request_)) return true;
  return request_.condition.kind == ConditionKind::idle && holder.protection.has_value();
}

/// A row whose process is not seen can be ignored by its number only, and is within no selector.
bool Judge::is_exempt(const UntiedCharge& charge) const {
  if (is_narrowing(request_.selection)) return true;
  return std::any_of(request_.ignored_pids.begin(), request_.ignored_pids.end(), [&](const ProcessSelector& selector) {
    return selector.pid == charge.driver_pid && !selector.start_ticks;
  });
}

void Judge::sort_holders() {
  for (const auto& holder : now_.attribution.holders) {
    const auto* place = place_of(holder, index_);
    if (place == nullptr || !has_part_in(holder, *place, now_.snapshot)) continue;
    if (!is_exempt(holder)) {
      sides_.counting.push_back(holder.key.pid);
      continue;
    }
    sides_.has_exempt = true;
    if (place->memory.known() || place->has_context) sides_.exempt = sum(sides_.exempt, place->memory);
  }
}

/// The driver charges a dead process for what others keep alive: theirs, where they were seen.
void Judge::sort_untied() {
  for (const auto& charge : now_.attribution.charged_to_nobody) {
    if (charge.gpu != index_ || (charge.memory.known() && charge.memory->count == 0)) continue;
    const auto counts_here = [&](pid_t pid) {
      const auto* holder = now_.attribution.find(pid);
      return holder == nullptr || !is_exempt(*holder);
    };
    const auto& keepers = charge.inheritors;
    const bool all_exempt = !keepers.empty() && std::none_of(keepers.begin(), keepers.end(), counts_here);
    if (all_exempt || is_exempt(charge))
      sides_.exempt = sum(sides_.exempt, charge.memory);
    else if (keepers.empty())
      sides_.unseen.push_back(charge.driver_pid);
  }
  std::sort(sides_.unseen.begin(), sides_.unseen.end());
}

bool Judge::may_be_releasing() const {
  return (memory_.since_release && *memory_.since_release < policy_.recent_release) ||
         (memory_.since_fall && *memory_.since_fall < policy_.held_by_nobody_after);
}

bool Judge::could_be_held_unseen() const {
  const auto& holders = now_.attribution.holders;
  return !now_.snapshot.visibility.complete() || std::any_of(holders.begin(), holders.end(), may_hold_unseen);
}

Reading<Bytes> Judge::baseline() const {
  const auto& accounts = now_.attribution.accounts;
  const auto account =
      std::find_if(accounts.begin(), accounts.end(), [&](const GpuAccount& each) { return each.index == index_; });
  if (account == accounts.end()) return Unknown::not_asked;
  if (!account->baseline.known()) return account->baseline.reason();
  const Baseline& known = *account->baseline;
  if (known.source == BaselineSource::assumed && memory_.floor && may_be_releasing())
    return std::min(known.amount, *memory_.floor);
  return known.amount;
}

Reading<Bytes> Judge::limit() const {
  const auto& limit = request_.condition.limit;
  if (!limit.percent) return limit.amount;
  if (!gate_.total.known()) return gate_.total.reason();
  return Bytes{gate_.total->count / 100 * *limit.percent + gate_.total->count % 100 * *limit.percent / 100};
}

/// Nobody who counts is left, and more is in use than may be: late, out of sight, or of no process at all.
void Judge::judge_excess() {
  if (!sides_.exempt.known())
    return say(GateState::cannot_tell, "the driver does not say how much memory the processes have that do not count");
  if (may_be_releasing()) return say(GateState::releasing, "nobody is left, the memory has not come back yet");
  if (!baseline().known())
    return say(GateState::cannot_tell,
               "no baseline is known, so memory in use may be the GPU's own or that of a process out of sight");
  if (could_be_held_unseen())
    return say(GateState::cannot_tell, "memory is in use that a process out of sight could hold");
  if (sides_.has_exempt)
    return say(GateState::cannot_tell, "more is in use than the processes are charged for that do not count");
  if (memory_.watched < policy_.held_by_nobody_after)
    return say(GateState::releasing, "no process holds the memory in use; in 10 s it is known whether it falls");
  say(GateState::held_by_nobody, "no process holds the memory in use and it does not fall: reset the GPU or reboot");
}

void Judge::judge_idle() {
  gate_.limit = sum(baseline().known() ? baseline() : Reading<Bytes>(Bytes{0}), sides_.exempt.value_or(Bytes{0}));
  if (!sides_.counting.empty() || !sides_.unseen.empty()) return say(GateState::in_use);
  if (!gate_.used.known())
    return say(GateState::cannot_tell, fmt::format("no memory figure: {}", describe(gate_.used.reason())));
  if (*gate_.used <= *gate_.limit + policy_.memory_tolerance) return say(GateState::free);
  judge_excess();
}

/// A threshold: the figure decides, and whoever has memory is named.
void Judge::judge_amount() {
  gate_.limit = limit();
  const bool wants_free = request_.condition.kind == ConditionKind::free;
  const auto& figure = wants_free ? gate_.free : gate_.used;
  if (!figure.known() || !gate_.limit.known()) {
    const Unknown reason = figure.known() ? gate_.limit.reason() : figure.reason();
    return say(GateState::cannot_tell, fmt::format("no memory figure: {}", describe(reason)));
  }
  const Bytes exempt = sides_.exempt.value_or(Bytes{0});
  const bool holds = wants_free ? *figure + exempt >= *gate_.limit : *figure - exempt < *gate_.limit;
  if (holds) return say(GateState::free);
  if (!sides_.exempt.known())
    return say(GateState::cannot_tell, "the driver does not say how much memory the processes have that are ignored");
  if (!sides_.counting.empty() || !sides_.unseen.empty()) return say(GateState::in_use);
  if (wants_free && gate_.total.known() && *gate_.total < *gate_.limit)
    return say(GateState::in_use, fmt::format("it has {} MiB in all, less than was asked for", gate_.total->mib()));
  if (may_be_releasing()) return say(GateState::releasing, "nobody is left, the memory has not come back yet");
  say(GateState::in_use, "no process that can be seen has the memory");
}

GpuGate Judge::run() {
  gate_.index = index_;
  const auto& gpus = now_.snapshot.gpus;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& each) { return each.index == index_; });
  if (gpu == gpus.end()) {
    say(GateState::cannot_tell, "the driver does not show this GPU any more");
    return std::move(gate_);
  }
  gate_.uuid = gpu->uuid;
  gate_.total = gpu->memory.total;
  gate_.used = gpu->memory.used;
  gate_.free = gpu->memory.free;
  if (!gate_.free.known() && gate_.total.known() && gate_.used.known())
    gate_.free = *gate_.total - *gate_.used - gpu->memory.reserved.value_or(Bytes{0});
  sort_holders();
  sort_untied();
  if (request_.condition.kind == ConditionKind::idle)
    judge_idle();
  else
    judge_amount();
  if (gate_.state != GateState::free) {
    gate_.in_the_way = std::move(sides_.counting);
    gate_.charged_unseen = std::move(sides_.unseen);
  }
  if (gate_.state == GateState::cannot_tell && gpu->state != GpuState::ok)
    gate_.detail = fmt::format("the GPU is {}; {}", describe(gpu->state), gate_.detail);
  return std::move(gate_);
}

}  // namespace

bool counts(const Holder& holder, const Snapshot& snapshot, const WaitRequest& request) {
  const auto& selection = request.selection;
  if (!selection.pids.empty() && !is_named(selection.pids, holder.key)) return false;
  return is_within(snapshot, holder.key.pid, selection) && !is_ignored(holder.key, snapshot, request);
}

GpuGate judge_gate(unsigned index, const Sighting& now, const WaitRequest& request, const GateMemory& memory,
                   const Policy& policy) {
  return Judge(index, now, request, memory, policy).run();
}

void spare_ignored(Attribution& attribution, const Snapshot& snapshot, const WaitRequest& request) {
  const Protection spared{std::string(kIgnoredRule), "it was named as one to ignore"};
  for (auto& holder : attribution.holders)
    if (!holder.protection && is_ignored(holder.key, snapshot, request)) holder.protection = spared;
  for (auto& group : attribution.groups)
    for (auto& relative : group.relatives)
      if (!relative.protection && is_ignored(relative.key, snapshot, request)) relative.protection = spared;
}

}  // namespace vacate
