// SPDX-License-Identifier: Apache-2.0
#include "plan/thaw.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {
namespace {

const FrozenGroup* group_of(const Snapshot& snapshot, pid_t pid) {
  const auto at = std::find_if(snapshot.frozen.begin(), snapshot.frozen.end(), [&](const FrozenGroup& group) {
    return group.members.known() && std::binary_search(group.members->begin(), group.members->end(), pid);
  });
  return at == snapshot.frozen.end() ? nullptr : &*at;
}

// Frozen by version 1 it waits in state D, by version 2 in S (facts.md 3.5).
bool needs_thaw(const Process& process, const FrozenGroup* group) {
  return group != nullptr ? group->freezer == Freezer::v1 : process.state == 'D';
}

std::string where(const FrozenGroup& group) { return printable(group.path, 512); }

class Thaws {
 public:
  Thaws(const Snapshot& snapshot, const FreeRequest& request, const Kinship& kinship, std::map<pid_t, Rung>& rungs,
        Decisions& decisions)
      : snapshot_(snapshot), request_(request), kinship_(kinship), rungs_(rungs), decisions_(decisions) {}

  void choose() {
    std::vector<std::pair<pid_t, std::string>> hindered;
    for (const auto& [pid, rung] : rungs_) {
      const auto* process = snapshot_.find(pid);
      if (process == nullptr || process->condition != Condition::frozen || decisions_.units.contains(pid)) continue;
      const auto* group = group_of(snapshot_, pid);
      const auto hindrance = why_not_thawed(group);
      if (!hindrance) {
        decisions_.thaws[pid] = {group->path, group->freezer};
      } else if (needs_thaw(*process, group)) {
        hindered.emplace_back(pid, *hindrance);
      } else if (request_.thaw) {
        decisions_.remarks[pid].push_back("its control group is not thawed: " + *hindrance);
      }
    }
    for (const auto& [pid, hindrance] : hindered) refuse(pid, hindrance);
  }

 private:
  std::optional<std::string> why_not_thawed(const FrozenGroup* group) const {
    if (group == nullptr) return "which control group keeps it frozen cannot be seen";
    for (const auto pid : *group->members) {
      const auto* process = snapshot_.find(pid);
      const bool ends = rungs_.contains(pid) || (process != nullptr && is_gone(*process));
      if (!ends) return fmt::format("process {} is in {} too and is not ended", pid, where(*group));
    }
    if (!request_.thaw) return fmt::format("--thaw thaws {}", where(*group));
    return std::nullopt;
  }

  void refuse(pid_t pid, const std::string& hindrance) {
    rungs_.erase(pid);
    const auto* member = kinship_.member(pid);
    if (member == nullptr || member->holder == nullptr) return;
    decisions_.choices[pid] = {
        false, "",
        Refusal{
            "frozen",
            fmt::format("the freezer of cgroup version 1 holds it: not even KILL reaches it before it is thawed; {}",
                        hindrance)}};
  }

  const Snapshot& snapshot_;
  const FreeRequest& request_;
  const Kinship& kinship_;
  std::map<pid_t, Rung>& rungs_;
  Decisions& decisions_;
};

}  // namespace

void choose_thaws(const Snapshot& snapshot, const FreeRequest& request, const Kinship& kinship,
                  std::map<pid_t, Rung>& rungs, Decisions& decisions) {
  Thaws(snapshot, request, kinship, rungs, decisions).choose();
}

}  // namespace vacate
