// SPDX-License-Identifier: Apache-2.0
#include "attribute/groups.h"

#include <algorithm>
#include <set>
#include <utility>

#include "attribute/parentage.h"
#include "attribute/programs.h"

namespace vacate {
namespace {

// Sets of pids that grow together. The lowest pid of a set stands for it, so the result does not depend on the order of
// the joins.
class DisjointPids {
 public:
  void add(pid_t pid) { parent_.emplace(pid, pid); }
  [[nodiscard]] pid_t find(pid_t pid) {
    while (parent_[pid] != pid) {
      parent_[pid] = parent_[parent_[pid]];
      pid = parent_[pid];
    }
    return pid;
  }
  void join(pid_t a, pid_t b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);
  }
  [[nodiscard]] const std::map<pid_t, pid_t>& all() const noexcept { return parent_; }

 private:
  std::map<pid_t, pid_t> parent_;
};

// Shells, logins, managers and runtimes start everything on a machine; joined, all its work would be one group. What
// cannot be told from one of them (no readable executable) joins nothing either, unless it holds a GPU, which they do
// not.
bool may_join(const Census& census, const Process& process) {
  if (process.kernel_thread || is_first_of_namespace(process)) return false;
  if (process.key.pid == census.snapshot().caller.self.pid) return false;
  if (program_of(process, census.snapshot().shells) != Program::ordinary) return false;
  return process.exe.known() || census.is_holder(process.key.pid);
}

class Joiner {
 public:
  explicit Joiner(const Census& census) : census_(census) {
    for (const auto& process : census.snapshot().processes) {
      if (is_gone(process)) continue;
      sets_.add(process.key.pid);
      if (may_join(census, process)) joinable_.insert(process.key.pid);
    }
    for (const auto& [pid, references] : census.references()) sets_.add(pid);
  }

  DisjointPids join_all() && {
    join_clients();
    join_process_groups();
    join_creators();
    join_sessions();
    return std::move(sets_);
  }

 private:
  void join(pid_t a, pid_t b) {
    if (joinable_.contains(a) && joinable_.contains(b)) sets_.join(a, b);
  }

  void join_clients() {
    for (const auto& client : census_.snapshot().shared_clients) {
      pid_t first = 0;
      for (const auto pid : client) {
        if (!joinable_.contains(pid)) continue;
        if (first != 0) sets_.join(first, pid);
        first = pid;
      }
    }
  }

  void join_process_groups() {
    for (const auto pid : joinable_) {
      const auto pgid = census_.living(pid)->pgid;
      if (pgid <= 0) continue;  // led from outside this pid namespace: 0 may stand for many groups
      const auto [first, is_new] = first_of_process_group_.emplace(pgid, pid);
      if (!is_new) sets_.join(first->second, pid);
    }
  }

  void join_creators() {
    for (const auto pid : joinable_) {
      const auto& process = *census_.living(pid);
      if (is_with_its_creator(census_, process)) join(pid, process.ppid);
    }
  }

  void join_sessions() {
    for (const auto pid : joinable_) {
      const auto& process = *census_.living(pid);
      const bool leader_lives = census_.living(process.pgid) != nullptr;
      if (process.sid > 0 && leader_lives) join(pid, process.sid);
    }
  }

  const Census& census_;
  std::set<pid_t> joinable_;
  std::map<pid_t, pid_t> first_of_process_group_;
  DisjointPids sets_;
};

}  // namespace

Groups::Groups(const Census& census) : census_(&census) {
  auto sets = Joiner(census).join_all();
  std::map<pid_t, std::vector<pid_t>> by_lowest;
  const auto all = sets.all();
  for (const auto& [pid, unused] : all) by_lowest[sets.find(pid)].push_back(pid);
  for (auto& [lowest, pids] : by_lowest) {
    for (const auto pid : pids) group_of_.emplace(pid, members_.size());
    members_.push_back(std::move(pids));
  }
  for (std::size_t group = 0; group < members_.size(); ++group) {
    std::set<pid_t> tops;
    for (const auto pid : members_[group]) {
      find_topmost(pid, group);
      tops.insert(topmost_of(pid));
    }
    topmost_.emplace_back(tops.begin(), tops.end());
  }
}

std::optional<std::size_t> Groups::group_of(pid_t pid) const noexcept {
  const auto at = group_of_.find(pid);
  return at == group_of_.end() ? std::nullopt : std::optional(at->second);
}

pid_t Groups::topmost_of(pid_t pid) const noexcept {
  const auto at = topmost_of_.find(pid);
  return at == topmost_of_.end() ? pid : at->second;
}

// Climbs until it is known or the group ends. Parents could in principle form a ring (see descends_from()): never more
// steps than members.
void Groups::find_topmost(pid_t pid, std::size_t group) {
  std::vector<pid_t> climbed;
  pid_t top = pid;
  for (auto steps = members_[group].size(); steps > 0; --steps) {
    if (const auto known = topmost_of_.find(top); known != topmost_of_.end()) {
      top = known->second;
      break;
    }
    climbed.push_back(top);
    const auto* process = census_->living(top);
    if (process == nullptr || process->ppid == top || group_of(process->ppid) != group) break;
    top = process->ppid;
  }
  for (const auto below : climbed) topmost_of_.emplace(below, top);
}

}  // namespace vacate
