// SPDX-License-Identifier: Apache-2.0
#include "plan/closure.h"

#include <algorithm>
#include <set>

#include "plan/wording.h"

namespace vacate {
namespace {

bool has_context(const Holder& holder) {
  return std::any_of(holder.gpus.begin(), holder.gpus.end(),
                     [](const HolderOnGpu& on_gpu) { return on_gpu.has_context; });
}

// Others that share an open file description with it.
std::set<pid_t> co_holders(const Snapshot& snapshot, pid_t pid) {
  std::set<pid_t> others;
  for (const auto& client : snapshot.shared_clients) {
    if (std::find(client.begin(), client.end(), pid) != client.end()) others.insert(client.begin(), client.end());
  }
  others.erase(pid);
  return others;
}

// Inheritors of the same dead opener: parts of one client as well, though perhaps of different files of it.
std::set<pid_t> fellow_inheritors(const Attribution& attribution, pid_t pid) {
  std::set<pid_t> others;
  for (const auto& row : attribution.charged_to_nobody) {
    if (std::find(row.inheritors.begin(), row.inheritors.end(), pid) != row.inheritors.end())
      others.insert(row.inheritors.begin(), row.inheritors.end());
  }
  others.erase(pid);
  return others;
}

bool may_join(const Holder& ended, const Holder& other, const Kinship& kinship, const Selector& selector) {
  if (selector.obstacle({&other, nullptr}) || !selector.is_within(other.key.pid)) return false;
  if (!selector.may_come_along(other, ended)) return false;
  if (other.standing == Standing::leftover) return ended.standing == Standing::leftover;
  return !has_context(other) && other.pins_memory() && kinship.is_below(other.key.pid, ended.key.pid) &&
         selector.pinned_outside(other).empty();
}

}  // namespace

void close_over_clients(const Snapshot& snapshot, const Attribution& attribution, const Kinship& kinship,
                        const Selector& selector, Decisions& decisions) {
  std::vector<pid_t> open;
  for (const auto& [pid, choice] : decisions.choices) {
    if (choice.end) open.push_back(pid);
  }
  while (!open.empty()) {
    const auto* ended = attribution.find(open.back());
    open.pop_back();
    for (const auto pid : co_holders(snapshot, ended->key.pid)) {
      const auto* other = attribution.find(pid);
      if (other == nullptr || decisions.ends(pid) || !may_join(*ended, *other, kinship, selector)) continue;
      decisions.choices[pid] = {true, "same-client", std::nullopt};
      open.push_back(pid);
    }
  }
  for (const auto& [pid, choice] : decisions.choices) {
    if (!choice.end) continue;
    auto staying = co_holders(snapshot, pid);
    std::erase_if(staying, [&](pid_t other) { return decisions.ends(other) || attribution.find(other) == nullptr; });
    if (!staying.empty()) decisions.remarks[pid].push_back(shared_client_remark({staying.begin(), staying.end()}));
    auto fellows = fellow_inheritors(attribution, pid);
    std::erase_if(fellows, [&](pid_t other) { return decisions.ends(other) || staying.contains(other); });
    if (!fellows.empty()) decisions.remarks[pid].push_back(fellow_inheritors_remark({fellows.begin(), fellows.end()}));
  }
}

}  // namespace vacate
