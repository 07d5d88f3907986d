// SPDX-License-Identifier: Apache-2.0
#include "plan/ladder.h"

#include <algorithm>
#include <set>

namespace vacate {
namespace {

class Ladder {
 public:
  Ladder(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector, const Decisions& decisions,
         const FreeRequest& request)
      : snapshot_(snapshot), kinship_(kinship), selector_(selector), decisions_(decisions), request_(request) {}

  std::map<pid_t, Rung> arrange() && {
    for (const auto& [pid, choice] : decisions_.choices) {
      if (!choice.end) continue;
      rungs_[pid] = {Ask::at_once, choice.rule, {}};
      if (decisions_.units.contains(pid)) continue;
      ended_of_group_[kinship_.group_of(pid)].push_back(pid);
    }
    for (const auto& [pid, choice] : decisions_.choices) {
      if (!choice.end || decisions_.units.contains(pid)) continue;  // who ends by its unit brings nobody along
      if (kinship_.member(pid)->standing() == Standing::leftover)
        add_leftover_relatives(pid);
      else
        add_tree(pid);
    }
    for (const auto& [group, ended] : ended_of_group_) add_whole_group(group, ended);
    return std::move(rungs_);
  }

 private:
  // --- leftovers: ancestors of a holder inside the group, and what descends from those

  // May it end with leftovers, as a relative or as one that has device files only?
  bool goes_along(const Member& member) const {
    if (member.standing() != Standing::leftover) return false;
    if (member.holder != nullptr && member.holder->pins_memory()) return false;
    return !selector_.obstacle(member) && selector_.is_within(member.key().pid);
  }

  // Somebody who stays: what he depends on is left to him.
  bool stays(pid_t pid) const {
    const auto* member = kinship_.member(pid);
    return !decisions_.ends(pid) && member != nullptr && !goes_along(*member);
  }

  bool carries_one_that_stays(pid_t pid) const {
    const auto below = kinship_.descendants(pid);
    return std::any_of(below.begin(), below.end(),
                       [&](pid_t other) { return kinship_.group_of(other) == kinship_.group_of(pid) && stays(other); });
  }

  void add_leftover_relatives(pid_t holder) {
    add_descendants(holder);
    for (const auto ancestor : kinship_.ancestors_in_group(holder)) {
      if (decisions_.ends(ancestor)) continue;
      if (stays(ancestor) || carries_one_that_stays(ancestor)) break;
      add(ancestor);
      add_descendants(ancestor);
    }
  }

  void add_descendants(pid_t from) {
    std::set<pid_t> met = {from};
    std::vector<pid_t> open = {from};
    while (!open.empty()) {
      const auto next = open.back();
      open.pop_back();
      for (const auto child : kinship_.children_in_group(next)) {
        if (!met.insert(child).second || stays(child)) continue;
        if (!decisions_.ends(child)) {
          if (carries_one_that_stays(child)) continue;
          add(child);
        }
        open.push_back(child);
      }
    }
  }

  // Relatives that hang from no holder, orphaned and proven each on its own (a detokenizer beside the engine): they end
  // only where the whole of the group's leftovers does, for then nothing is left that they could serve.
  void add_whole_group(std::size_t group, const std::vector<pid_t>& ended) {
    const bool for_leftovers = std::any_of(
        ended.begin(), ended.end(), [&](pid_t pid) { return kinship_.member(pid)->standing() == Standing::leftover; });
    if (!for_leftovers || group == 0) return;
    std::vector<pid_t> loose;
    for (const auto& [pid, member] : kinship_.members()) {
      if (kinship_.group_of(pid) != group || member.standing() != Standing::leftover || decisions_.ends(pid)) continue;
      if (!goes_along(member)) {
        if (member.holder != nullptr) return;
        continue;
      }
      if (kinship_.depth_in_group(pid) == 0 && !carries_one_that_stays(pid)) loose.push_back(pid);
    }
    for (const auto pid : loose) {
      add(pid);
      add_descendants(pid);
    }
  }

  void add(pid_t pid) {
    const auto& member = *kinship_.member(pid);
    const auto rule = member.holder != nullptr ? "leftover" : "relative";
    rungs_.try_emplace(pid, Rung{member.is_tracker() ? Ask::after_others : Ask::at_once, rule,
                                 ended_of_group_[kinship_.group_of(pid)]});
  }

  // --- live and unsure trees: the root first, the rest at half the grace

  void add_tree(pid_t holder) {
    const auto root = root_of(holder);
    if (root == holder) return;
    rungs_[holder].ask = Ask::at_half_grace;
    if (decisions_.ends(root)) {
      add_between(holder, root);
      return;
    }
    const auto below = kinship_.descendants(root);
    std::vector<pid_t> ended;
    std::copy_if(below.begin(), below.end(), std::back_inserter(ended),
                 [&](pid_t pid) { return decisions_.ends(pid); });
    rungs_.try_emplace(root, Rung{Ask::at_once, "root-of-tree", ended});
    add_between(holder, root);
    for (const auto pid : below) {
      const auto* member = kinship_.member(pid);
      if (member == nullptr || decisions_.ends(pid) || kinship_.group_of(pid) != kinship_.group_of(root)) continue;
      if (member->is_tracker()) rungs_.try_emplace(pid, Rung{Ask::after_others, "relative", ended});
      if (member->holder != nullptr) rungs_.try_emplace(pid, Rung{Ask::at_half_grace, "relative", ended});
    }
  }

  void add_between(pid_t holder, pid_t root) {
    for (const auto ancestor : kinship_.ancestors_in_group(holder)) {
      if (ancestor == root) return;
      if (decisions_.ends(ancestor) || selector_.obstacle(*kinship_.member(ancestor))) continue;
      if (supervises_other_work(*snapshot_.find(ancestor))) continue;
      auto& rung = rungs_.try_emplace(ancestor, Rung{Ask::at_half_grace, "relative", {}}).first->second;
      if (std::find(rung.for_whom.begin(), rung.for_whom.end(), holder) == rung.for_whom.end())
        rung.for_whom.push_back(holder);
    }
  }

  // The topmost ancestor that may be asked first. An ancestor that is ended anyway is asked before its children in any
  // case; others only where whole trees are meant: who names a process does not name its parent.
  pid_t root_of(pid_t holder) const {
    auto root = holder;
    for (const auto ancestor : kinship_.ancestors_in_group(holder)) {
      if (!decisions_.ends(ancestor) && !may_be_root(ancestor, holder)) break;
      root = ancestor;
    }
    return root;
  }

  // Shells, pid 1, managers and runtimes are in no group, so no ancestor inside the group is one.
  bool may_be_root(pid_t pid, pid_t holder) const {
    const auto* process = snapshot_.find(pid);
    const auto& member = *kinship_.member(pid);
    if (!request_.selection.pids.empty() || process == nullptr || !process->exe.known()) return false;
    if (member.protection() || selector_.obstacle(member) || !selector_.is_within(pid)) return false;
    if (process->sid != snapshot_.find(holder)->sid) return false;
    return !supervises_other_work(*process);
  }

  // A batch daemon or a CI agent must never be asked to end for the sake of one of its jobs. Every process below it has
  // to be part of what ends: a helper that is not makes it a supervisor, which at worst spares the root and asks the
  // next below it.
  bool supervises_other_work(const Process& process) const {
    const auto pid = process.key.pid;
    // What it starts in process groups of their own is work that it supervises, as a shell does with its jobs.
    const auto& children = kinship_.children(pid);
    if (std::any_of(children.begin(), children.end(),
                    [&](pid_t child) { return snapshot_.find(child)->pgid != process.pgid; }))
      return true;
    const auto below = kinship_.descendants(pid);
    return std::any_of(below.begin(), below.end(), [&](pid_t other) { return !belongs_to_ended_tree(other, pid); });
  }

  bool belongs_to_ended_tree(pid_t pid, pid_t root) const {
    if (decisions_.ends(pid)) return true;
    const auto* member = kinship_.member(pid);
    if (member != nullptr && member->holder != nullptr)
      return !member->holder->pins_memory() && !selector_.obstacle(*member) && selector_.is_within(pid) &&
             kinship_.group_of(pid) == kinship_.group_of(root);
    if (member != nullptr && member->protection()) return false;
    if (member != nullptr && member->is_tracker()) return true;
    const auto below = kinship_.descendants(pid);
    if (std::any_of(below.begin(), below.end(), [&](pid_t other) { return decisions_.ends(other); })) return true;
    return std::any_of(decisions_.choices.begin(), decisions_.choices.end(), [&](const auto& entry) {
      return entry.second.end && kinship_.is_below(entry.first, root) && kinship_.is_below(pid, entry.first);
    });
  }

  const Snapshot& snapshot_;
  const Kinship& kinship_;
  const Selector& selector_;
  const Decisions& decisions_;
  const FreeRequest& request_;
  std::map<pid_t, Rung> rungs_;
  std::map<std::size_t, std::vector<pid_t>> ended_of_group_;
};

}  // namespace

std::map<pid_t, Rung> arrange(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector,
                              const Decisions& decisions, const FreeRequest& request) {
  return Ladder(snapshot, kinship, selector, decisions, request).arrange();
}

}  // namespace vacate
