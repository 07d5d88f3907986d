// SPDX-License-Identifier: Apache-2.0
#include "attribute/parentage.h"

#include "attribute/programs.h"

namespace vacate {
namespace {

bool leads_own_process_group(const Process& process) noexcept { return process.pgid == process.key.pid; }

bool adopts_orphans(const Census& census, const Process& parent) {
  return is_first_of_namespace(parent) || program_of(parent, census.snapshot().shells) == Program::service_manager;
}

}  // namespace

bool is_with_its_creator(const Census& census, const Process& process) {
  const auto* parent = census.living(process.ppid);
  if (parent == nullptr) return false;
  if (parent->pgid == process.pgid) return true;
  return leads_own_process_group(process) && !adopts_orphans(census, *parent);
}

bool is_led_by_living_ancestor(const Census& census, const Process& process) {
  const auto* parent = census.snapshot().find(process.ppid);
  if (process.ppid == 1 || (parent != nullptr && is_first_of_namespace(*parent))) return false;
  const auto* leader = census.living(process.pgid);
  if (leader == nullptr) return false;
  return leads_own_process_group(process) || descends_from(census, process, leader->key.pid);
}

bool is_adopted(const Census& census, const Process& process) {
  if (const auto* parent = census.living(process.ppid)) return parent->pgid != process.pgid;
  return process.ppid == 1 && process.pgid > 1;
}

bool descends_from(const Census& census, const Process& process, pid_t ancestor) {
  // A snapshot is not taken at one instant, so the parents in it could in principle form a ring: never more steps than
  // processes.
  auto steps = census.snapshot().processes.size();
  for (auto pid = process.ppid; pid > 0 && steps > 0; --steps) {
    if (pid == ancestor) return true;
    const auto* above = census.living(pid);
    if (above == nullptr) return false;
    pid = above->ppid;
  }
  return false;
}

}  // namespace vacate
