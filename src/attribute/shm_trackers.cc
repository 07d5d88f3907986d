// SPDX-License-Identifier: Apache-2.0
#include "attribute/shm_trackers.h"

namespace vacate {

std::set<pid_t> strangers_to(const Snapshot& before, const std::set<pid_t>& clients) {
  std::set<pid_t> strangers;
  for (const auto& process : before.processes) strangers.insert(process.key.pid);
  for (const pid_t client : clients) {
    const auto* process = before.find(client);
    if (process == nullptr || !process->detailed) return {};
    for (const auto& end : process->pipes) {
      if (!end.other_end.known()) return {};
      for (const pid_t other : *end.other_end) strangers.erase(other);
    }
  }
  return clients.empty() ? std::set<pid_t>() : strangers;
}

}  // namespace vacate
