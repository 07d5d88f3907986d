// SPDX-License-Identifier: Apache-2.0
#include "attribute/origins.h"

#include "attribute/programs.h"

namespace vacate {

Origins::Origins(const Census& census) : census_(&census) {
  for (const auto& process : census.snapshot().processes) {
    if (process.cgroup.empty() || is_gone(process)) continue;
    const auto& origin = origins_.emplace(process.key.pid, parse_origin(process.cgroup)).first->second;
    if (origin.container) by_container_[*origin.container].push_back(&process);
  }
}

const Origin& Origins::of(pid_t pid) const noexcept {
  static const Origin kNone;
  const auto at = origins_.find(pid);
  return at == origins_.end() ? kNone : at->second;
}

bool Origins::is_below_same_container(const Process& process, const std::string& container) const noexcept {
  return of(process.ppid).container == container;
}

const Process* Origins::first_of_container(const std::string& container) const {
  const auto members = by_container_.find(container);
  if (members == by_container_.end()) return nullptr;
  const Process* first = nullptr;
  for (const auto* process : members->second) {
    // A pid namespace below the container's has a pid 1 too; that one has a parent in the container.
    if (is_below_same_container(*process, container)) continue;
    const auto* parent = census_->living(process->ppid);
    // A runtime adopts too, as subreaper; what it starts leads a session.
    const bool started_by_runtime = parent != nullptr && process->sid == process->key.pid &&
                                    program_of(*parent, census_->snapshot().shells) == Program::container_runtime;
    const bool leads_namespace = process->ns_pids.size() > 1 && process->ns_pids.back() == 1;
    if (leads_namespace) return process;
    if (started_by_runtime && (first == nullptr || process->key.start_ticks < first->key.start_ticks)) first = process;
  }
  return first;
}

}  // namespace vacate
