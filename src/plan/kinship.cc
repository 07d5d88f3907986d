// SPDX-License-Identifier: Apache-2.0
#include "plan/kinship.h"

#include <algorithm>
#include <set>

namespace vacate {

Kinship::Kinship(const Snapshot& snapshot, const Attribution& attribution) : snapshot_(&snapshot) {
  for (const auto& group : attribution.groups) {
    for (const auto pid : group.holders) {
      if (const auto* holder = attribution.find(pid)) members_[pid].holder = holder;
      group_of_[pid] = group.id;
    }
    for (const auto& relative : group.relatives) {
      members_[relative.key.pid].relative = &relative;
      group_of_[relative.key.pid] = group.id;
    }
  }
  for (const auto& process : snapshot.processes) {
    if (!is_gone(process)) children_[process.ppid].push_back(process.key.pid);
  }
}

const Member* Kinship::member(pid_t pid) const noexcept {
  const auto at = members_.find(pid);
  return at == members_.end() ? nullptr : &at->second;
}

std::size_t Kinship::group_of(pid_t pid) const noexcept {
  const auto at = group_of_.find(pid);
  return at == group_of_.end() ? 0 : at->second;
}

std::vector<pid_t> Kinship::ancestors_in_group(pid_t pid) const {
  std::vector<pid_t> above;
  const auto group = group_of(pid);
  // A snapshot is not one instant: parents could form a ring, so stop at whoever was met before.
  for (const auto* process = snapshot_->find(pid); process != nullptr && group != 0;) {
    const auto parent = process->ppid;
    if (parent == pid || group_of(parent) != group || std::find(above.begin(), above.end(), parent) != above.end())
      break;
    above.push_back(parent);
    process = snapshot_->find(parent);
  }
  return above;
}

const std::vector<pid_t>& Kinship::children(pid_t pid) const noexcept {
  static const std::vector<pid_t> kNone;
  const auto at = children_.find(pid);
  return at == children_.end() ? kNone : at->second;
}

std::vector<pid_t> Kinship::children_in_group(pid_t pid) const {
  std::vector<pid_t> inside;
  for (const auto child : children(pid)) {
    if (group_of(child) == group_of(pid) && group_of(pid) != 0) inside.push_back(child);
  }
  return inside;
}

std::vector<pid_t> Kinship::descendants(pid_t pid) const {
  std::set<pid_t> below;
  std::vector<pid_t> open = {pid};
  while (!open.empty()) {
    const auto next = open.back();
    open.pop_back();
    for (const auto child : children(next)) {
      if (child != pid && below.insert(child).second) open.push_back(child);
    }
  }
  return {below.begin(), below.end()};
}

bool Kinship::is_below(pid_t pid, pid_t ancestor) const {
  std::set<pid_t> met;
  for (const auto* process = snapshot_->find(pid); process != nullptr && met.insert(process->key.pid).second;) {
    if (process->ppid == ancestor) return true;
    process = snapshot_->find(process->ppid);
  }
  return false;
}

}  // namespace vacate
