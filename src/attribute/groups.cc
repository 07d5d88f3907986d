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
  collect_members();
  std::vector<pid_t> tops;
  for (std::size_t group = 0; group < count(); ++group) {
    tops.clear();
    for (const auto pid : members(group)) {
      find_topmost(pid, group);
      tops.push_back(topmost_of(pid));
    }
    std::sort(tops.begin(), tops.end());
    tops.erase(std::unique(tops.begin(), tops.end()), tops.end());
    topmost_.add_row(tops);
  }
}

// In the order of pids the lowest member, which stands for its set, comes first.
void Groups::collect_members() {
  auto sets = Joiner(*census_).join_all();
  known_.reserve(sets.all().size());
  std::uint32_t groups = 0;
  for (const auto& [pid, unused] : sets.all()) {
    const pid_t lowest = sets.find(pid);
    known_.push_back({pid, lowest == pid ? groups++ : find(lowest)->group, 0});
  }
  auto by_group = known_;
  std::stable_sort(by_group.begin(), by_group.end(),
                   [](const Member& a, const Member& b) { return a.group < b.group; });
  std::vector<pid_t> row;
  for (std::size_t i = 0; i < by_group.size(); ++i) {
    row.push_back(by_group[i].pid);
    if (i + 1 < by_group.size() && by_group[i + 1].group == by_group[i].group) continue;
    members_.add_row(row);
    row.clear();
  }
}

const Groups::Member* Groups::find(pid_t pid) const noexcept {
  const auto at = std::lower_bound(known_.begin(), known_.end(), pid,
                                   [](const Member& member, pid_t wanted) { return member.pid < wanted; });
  return at != known_.end() && at->pid == pid ? &*at : nullptr;
}

std::optional<std::size_t> Groups::group_of(pid_t pid) const noexcept {
  const auto* member = find(pid);
  return member == nullptr ? std::nullopt : std::optional<std::size_t>(member->group);
}

pid_t Groups::topmost_of(pid_t pid) const noexcept {
  const auto* member = find(pid);
  return member == nullptr ? pid : member->topmost;
}

// Climbs until it is known or the group ends. Parents could in principle form a ring (see descends_from()): never more
// steps than members. What was climbed gets the answer too, for a long chain would cost its square otherwise.
void Groups::find_topmost(pid_t pid, std::size_t group) {
  std::vector<pid_t> climbed;
  pid_t top = pid;
  for (auto steps = members(group).size(); steps > 0; --steps) {
    if (const auto known = at(top).topmost; known != 0) {
      top = known;
      break;
    }
    climbed.push_back(top);
    const auto* process = census_->living(top);
    if (process == nullptr || process->ppid == top || group_of(process->ppid) != group) break;
    top = process->ppid;
  }
  for (const auto below : climbed)
    if (auto& member = at(below); member.topmost == 0) member.topmost = top;
}

}  // namespace vacate
