// SPDX-License-Identifier: Apache-2.0
#include "probe/relatives.h"

#include <algorithm>
#include <map>
#include <set>

namespace vacate {
namespace {

class Family {
 public:
  explicit Family(const std::vector<Process>& processes) {
    for (const auto& process : processes) {
      by_pid_[process.key.pid] = &process;
      children_[process.ppid].push_back(process.key.pid);
      groups_[process.pgid].push_back(process.key.pid);
      sessions_[process.sid].push_back(process.key.pid);
    }
  }

  void add(pid_t pid) {
    if (by_pid_.contains(pid)) members_.insert(pid);
  }
  void add_peers() {
    for (const pid_t pid : snapshot()) {
      const auto& process = *by_pid_[pid];
      // 0: led from outside this pid namespace, or a kernel thread; it joins nothing.
      if (process.pgid > 0) add_all(groups_[process.pgid]);
      if (process.sid > 0) add_all(sessions_[process.sid]);
    }
  }
  void add_descendants() {
    auto pending = snapshot();
    while (!pending.empty()) {
      const pid_t pid = pending.back();
      pending.pop_back();
      for (const pid_t child : children_[pid])
        if (members_.insert(child).second) pending.push_back(child);
    }
  }
  void add_ancestors_and_leaders() {
    for (const pid_t pid : snapshot()) {
      add(by_pid_[pid]->sid);
      for (pid_t parent = by_pid_[pid]->ppid; by_pid_.contains(parent); parent = by_pid_[parent]->ppid)
        if (!members_.insert(parent).second) break;
    }
  }
  [[nodiscard]] std::vector<pid_t> snapshot() const { return {members_.begin(), members_.end()}; }

 private:
  void add_all(const std::vector<pid_t>& pids) { members_.insert(pids.begin(), pids.end()); }

  std::map<pid_t, const Process*> by_pid_;
  std::map<pid_t, std::vector<pid_t>> children_, groups_, sessions_;
  std::set<pid_t> members_;
};

}  // namespace

std::vector<pid_t> related_processes(const std::vector<Process>& processes, const std::vector<pid_t>& holders) {
  Family family(processes);
  for (const pid_t pid : holders) family.add(pid);
  family.add_peers();
  family.add_descendants();
  family.add_ancestors_and_leaders();
  // A session leader that was added just now has ancestors too, and an ancestor a session leader.
  family.add_ancestors_and_leaders();
  return family.snapshot();
}

}  // namespace vacate
