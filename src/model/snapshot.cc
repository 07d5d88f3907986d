// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot.h"

#include <algorithm>

#include "model/find_by_pid.h"
#include "model/holder.h"
#include "model/plan.h"

namespace vacate {

const Process* Snapshot::find(pid_t pid) const noexcept { return find_by_pid(processes, pid); }

const Holder* Attribution::find(pid_t pid) const noexcept { return find_by_pid(holders, pid); }

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
