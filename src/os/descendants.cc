// SPDX-License-Identifier: Apache-2.0
#include "os/descendants.h"

#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "os/procfs.h"

namespace vacate {
namespace {

using Children = std::map<pid_t, std::vector<pid_t>>;

/// A zombie without live threads has handed its children on already.
Result<Children> list_children(const ProcDirectory& root) {
  DirectoryReader reader;
  const auto pids = list_numbers(root, reader);
  if (!pids) return pids.error();
  Children children;
  for (const auto pid : *pids)
    if (const auto stat = root.stat_of(pid); stat && !stat->has_ended()) children[stat->ppid].push_back(pid);
  return children;
}

bool is_alive(const ProcessKey& key, const PinSet& pins) {
  const auto* process = pins.find(key);
  return process != nullptr && process->prove_alive().has_value();
}

}  // namespace

Result<Family> find_descendants(PinSet& pins) {
  const auto root = ProcDirectory::open_root();
  if (!root) return root.error();
  auto children = list_children(*root);
  if (!children) return children.error();
  Family family;
  const ProcessKey self{getpid(), 0, 0, 0};
  std::vector<ProcessKey> parents = {self};
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const ProcessKey parent = parents[i];
    for (const auto pid : (*children)[parent.pid]) {
      const auto key = pins.pin(pid);
      if (!key && key.error().code == ErrorCode::gone) continue;
      auto stat = key ? root->stat_of(pid) : Result<ProcStat>(key.error());
      // Its parent's number is that of the pinned parent, for that is alive after the line was read.
      const bool is_proven = stat && stat->ppid == parent.pid && stat->start_ticks == key->start_ticks &&
                             (i == 0 || is_alive(parent, pins));
      if (!is_proven) {
        family.incomplete = true;
        continue;
      }
      parents.push_back(*key);
      family.members.push_back({*key, *std::move(stat)});
    }
  }
  return family;
}

bool has_children() noexcept {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace vacate
