// SPDX-License-Identifier: Apache-2.0
#include "execute/families.h"

#include <map>
#include <numeric>

namespace vacate {
namespace {

class Joining {
 public:
  Joining(const Plan& plan, const Snapshot& seen) : seen_(seen), family_(plan.steps.size()) {
    std::iota(family_.begin(), family_.end(), std::size_t{0});
    for (std::size_t i = 0; i < plan.steps.size(); ++i) by_pid_.emplace(plan.steps[i].key.pid, i);
    for (const auto& [pid, step] : by_pid_) join(step, pid);
  }
  [[nodiscard]] std::vector<std::size_t> families() const { return family_; }

 private:
  void join(std::size_t step, pid_t pid) {
    const auto* process = seen_.find(pid);
    if (process == nullptr) return;
    if (process->pgid > 0) unite(step, by_group_.emplace(process->pgid, step).first->second);
    if (const auto above = nearest_above(*process); above != by_pid_.end()) unite(step, above->second);
  }

  /// The nearest ancestor that has a step. Parents of parents end at 1, yet a recorded machine may say anything.
  [[nodiscard]] std::map<pid_t, std::size_t>::const_iterator nearest_above(const Process& process) const {
    const Process* at = &process;
    for (std::size_t climbed = 0; climbed < seen_.processes.size(); ++climbed) {
      const auto above = by_pid_.find(at->ppid);
      if (above != by_pid_.end()) return above;
      at = at->ppid > 1 ? seen_.find(at->ppid) : nullptr;
      if (at == nullptr) break;
    }
    return by_pid_.end();
  }

  void unite(std::size_t a, std::size_t b) {
    const auto from = family_[a];
    const auto to = family_[b];
    for (auto& family : family_)
      if (family == from) family = to;
  }

  const Snapshot& seen_;
  std::vector<std::size_t> family_;
  std::map<pid_t, std::size_t> by_pid_, by_group_;
};

}  // namespace

std::vector<std::size_t> families_of(const Plan& plan, const Snapshot& seen) { return Joining(plan, seen).families(); }

}  // namespace vacate
