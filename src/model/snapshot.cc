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

bool Plan::has_action(Action action) const noexcept {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.action == action; });
}

}  // namespace vacate
