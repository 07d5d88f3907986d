// SPDX-License-Identifier: Apache-2.0
#include "probe/relatives.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model/find_by_pid.h"

namespace vacate {
namespace {

/// Whose `property` is what, sorted, in a few bytes a process: there are thousands, and few are ever looked up.
class Index {
 public:
  Index(const std::vector<Process>& processes, pid_t Process::*property) {
    entries_.reserve(processes.size());
    for (const auto& process : processes) entries_.emplace_back(process.*property, process.key.pid);
    std::sort(entries_.begin(), entries_.end());
  }
  template <class Use>
  void for_each(pid_t value, Use use) const {
    const auto first = std::lower_bound(entries_.begin(), entries_.end(), std::pair<pid_t, pid_t>(value, 0));
    for (auto at = first; at != entries_.end() && at->first == value; ++at) use(at->second);
  }

 private:
  std::vector<std::pair<pid_t, pid_t>> entries_;
};

class Family {
 public:
  explicit Family(const std::vector<Process>& processes)
      : processes_(processes),
        children_(processes, &Process::ppid),
        groups_(processes, &Process::pgid),
        sessions_(processes, &Process::sid) {}

  void add(pid_t pid) {
    if (find(pid) != nullptr) members_.insert(pid);
  }
  void add_peers() {
    std::set<pid_t> groups;
    std::set<pid_t> sessions;
    for (const pid_t pid : members_) {
      groups.insert(find(pid)->pgid);
      sessions.insert(find(pid)->sid);
    }
    const auto add_member = [&](pid_t pid) { members_.insert(pid); };
    // 0: led from outside this pid namespace, or a kernel thread; it joins nothing.
    for (const pid_t group : groups)
      if (group > 0) groups_.for_each(group, add_member);
    for (const pid_t session : sessions)
      if (session > 0) sessions_.for_each(session, add_member);
  }
  void add_descendants() {
    auto pending = snapshot();
    while (!pending.empty()) {
      const pid_t pid = pending.back();
      pending.pop_back();
      children_.for_each(pid, [&](pid_t child) {
        if (members_.insert(child).second) pending.push_back(child);
      });
    }
  }
  void add_ancestors_and_leaders() {
    for (const pid_t pid : snapshot()) {
      add(find(pid)->sid);
      for (auto* parent = find(find(pid)->ppid); parent != nullptr; parent = find(parent->ppid))
        if (!members_.insert(parent->key.pid).second) break;
    }
  }
  [[nodiscard]] std::vector<pid_t> snapshot() const { return {members_.begin(), members_.end()}; }

 private:
  [[nodiscard]] const Process* find(pid_t pid) const { return find_by_pid(processes_, pid); }

  const std::vector<Process>& processes_;
  Index children_, groups_, sessions_;
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
