// SPDX-License-Identifier: Apache-2.0
// Later rounds: what turned up since the first plan and belongs to it. A worker may answer TERM by forking a copy, or
// the end of a root makes leftovers of its children. Who merely came to the same GPU meanwhile is none of it, nor is
// what a supervisor started anew.
#include <algorithm>
#include <set>

#include "plan/assemble.h"
#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/ladder.h"
#include "plan/plan_free.h"
#include "plan/selection.h"
#include "plan/thaw.h"
#include "plan/units.h"

namespace vacate {
namespace {

using Identity = std::pair<pid_t, std::uint64_t>;  // pid and start time: what names a process over two scans

Identity identity_of(const ProcessKey& key) noexcept { return {key.pid, key.start_ticks}; }

// What the first plan showed, and what of the new snapshot belongs to that.
class Belonging {
 public:
  Belonging(const Snapshot& now, const Plan& first, const Snapshot& before, const Attribution& attribution_before)
      : now_(now) {
    for (const auto& process : before.processes) known_.insert(identity_of(process.key));
    for (const auto& step : first.steps) {
      shown_.insert(identity_of(step.key));
      if (!is_ending(step.action)) continue;
      asked_.insert(identity_of(step.key));
    }
    note_process_groups(before);
    for (const auto& group : attribution_before.groups) note_group(group, attribution_before);
    spread();
  }

  [[nodiscard]] bool was_shown(const ProcessKey& key) const { return shown_.contains(identity_of(key)); }
  [[nodiscard]] bool has(const ProcessKey& key) const {
    return is_successor(key) || members_.contains(identity_of(key));
  }
  /// Born after the first plan of somebody in it: as much a part of what was confirmed as its parent.
  [[nodiscard]] bool is_successor(const ProcessKey& key) const { return successors_.contains(identity_of(key)); }

 private:
  void note_group(const Group& group, const Attribution& attribution) {
    std::set<Identity> keys;
    for (const auto pid : group.holders) {
      if (const auto* holder = attribution.find(pid)) keys.insert(identity_of(holder->key));
    }
    for (const auto& relative : group.relatives) keys.insert(identity_of(relative.key));
    const bool asked = std::any_of(keys.begin(), keys.end(), [&](const Identity& key) { return asked_.contains(key); });
    if (asked) members_.insert(keys.begin(), keys.end());
  }

  // Only groups all of whose processes are asked to end: in any other a newcomer may be the child of one that stays.
  void note_process_groups(const Snapshot& before) {
    std::set<pid_t> with_others;
    for (const auto& process : before.processes) {
      if (is_gone(process) || process.pgid <= 0) continue;
      (asked_.contains(identity_of(process.key)) ? process_groups_ : with_others).insert(process.pgid);
    }
    for (const auto pgid : with_others) process_groups_.erase(pgid);
  }

  // Children of what belongs belong, to any depth; so do co-holders of clients, which may have children in turn.
  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& process : now_.processes) {
        if (!is_gone(process) && take_in(process)) changed = true;
      }
    }
  }

  bool take_in(const Process& process) {
    const auto key = identity_of(process.key);
    if (asked_.contains(key) || successors_.contains(key)) return false;
    if (!known_.contains(key) && is_born_of_plan(process)) return successors_.insert(key).second;
    return (descends(process) || shares_client(process.key.pid)) && members_.insert(key).second;
  }

  bool descends(const Process& process) const {
    const auto* parent = now_.find(process.ppid);
    if (parent == nullptr) return false;
    const auto key = identity_of(parent->key);
    return asked_.contains(key) || successors_.contains(key);
  }

  // Its parent may be gone by now: then the process group still tells. But what a living process outside the plan
  // started in that group is that one's work: a supervisor that starts anew what was ended.
  bool is_born_of_plan(const Process& process) const {
    if (descends(process)) return true;
    if (!process_groups_.contains(process.pgid)) return false;
    const auto* parent = now_.find(process.ppid);
    return parent == nullptr || is_gone(*parent) || parent->pgid != process.pgid;
  }

  bool shares_client(pid_t pid) const {
    return std::any_of(now_.shared_clients.begin(), now_.shared_clients.end(), [&](const std::vector<pid_t>& client) {
      return std::find(client.begin(), client.end(), pid) != client.end() &&
             std::any_of(client.begin(), client.end(), [&](pid_t other) { return is_of_plan(other); });
    });
  }

  bool is_of_plan(pid_t pid) const {
    const auto* process = now_.find(pid);
    return process != nullptr &&
           (asked_.contains(identity_of(process->key)) || successors_.contains(identity_of(process->key)));
  }

  const Snapshot& now_;
  std::set<Identity> known_, shown_, asked_, members_, successors_;
  std::set<pid_t> process_groups_;
};

Choice choose_again(const Holder& holder, const Selector& selector, const Belonging& belonging) {
  if (belonging.was_shown(holder.key) || !belonging.has(holder.key)) return {};
  if (!belonging.is_successor(holder.key)) return selector.choose(holder);
  if (!holder.pins_memory()) return {};
  if (auto refusal = selector.obstacle({&holder, nullptr})) return {false, "", std::move(refusal)};
  return {true, "successor", std::nullopt};
}

// Those of the first plan that still live are being dealt with; whoever does not belong is nobody's business here.
void keep_new_ones(Plan& plan, const Belonging& belonging, std::size_t first_steps) {
  std::erase_if(plan.steps,
                [&](const Step& step) { return belonging.was_shown(step.key) || !belonging.has(step.key); });
  for (std::size_t i = 0; i < plan.steps.size(); ++i) plan.steps[i].n = static_cast<unsigned>(first_steps + i + 1);
  plan.id = plan_id(plan);
}

}  // namespace

Plan plan_next_round(const Snapshot& snapshot, const Attribution& attribution, const FreeRequest& request,
                     const Plan& first, const Snapshot& first_snapshot, const Attribution& first_attribution) {
  const Belonging belonging(snapshot, first, first_snapshot, first_attribution);
  const Selector selector(snapshot, request);
  const Kinship kinship(snapshot, attribution);
  Decisions decisions;
  for (const auto& holder : attribution.holders) {
    auto choice = choose_again(holder, selector, belonging);
    if (choice.end || choice.refusal) decisions.choices.emplace(holder.key.pid, std::move(choice));
  }
  if (request.stop_units) choose_units(snapshot, attribution, kinship, selector, decisions);
  close_over_clients(snapshot, attribution, kinship, selector, decisions);
  auto rungs = arrange(snapshot, kinship, selector, decisions, request);
  choose_thaws(snapshot, request, kinship, rungs, decisions);
  auto plan = assemble(snapshot, kinship, selector, decisions, rungs);
  keep_new_ones(plan, belonging, first.steps.size());
  return plan;
}

}  // namespace vacate
