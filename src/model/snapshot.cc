// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot.h"

#include <algorithm>

#include "model/holder.h"
#include "model/plan.h"

namespace vacate {

const Process* Snapshot::find(pid_t pid) const noexcept {
  const auto at = std::lower_bound(processes.begin(), processes.end(), pid,
                                   [](const Process& process, pid_t wanted) { return process.key.pid < wanted; });
  return at != processes.end() && at->key.pid == pid ? &*at : nullptr;
}

const Holder* Attribution::find(pid_t pid) const noexcept {
  const auto at = std::lower_bound(holders.begin(), holders.end(), pid,
                                   [](const Holder& holder, pid_t wanted) { return holder.key.pid < wanted; });
  return at != holders.end() && at->key.pid == pid ? &*at : nullptr;
}

const MpsServer* MpsDaemon::server_of(pid_t client) const noexcept {
  for (const auto& server : servers)
    if (std::binary_search(server.clients.begin(), server.clients.end(), client)) return &server;
  return nullptr;
}

bool Plan::ends_anybody() const noexcept {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return is_ending(step.action); });
}

bool Plan::has_action(Action action) const noexcept {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.action == action; });
}

}  // namespace vacate
