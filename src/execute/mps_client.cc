// SPDX-License-Identifier: Apache-2.0
#include "execute/mps_client.h"

#include <algorithm>

#include <fmt/format.h>

#include "os/mps_control.h"

namespace vacate {
namespace {

const MpsDaemon* daemon_of(pid_t server, const Snapshot& seen) {
  for (const auto& daemon : seen.mps_daemons) {
    for (const auto& known : daemon.servers)
      if (known.pid == server) return &daemon;
  }
  return nullptr;
}

bool has(const std::vector<pid_t>& pids, pid_t pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

}  // namespace

Result<void> end_mps_contexts(const ProcessRef& client, pid_t server, const Snapshot& seen, Deadline deadline) {
  const auto* known = daemon_of(server, seen);
  if (known == nullptr || !known->uid.known()) return Error{ErrorCode::bug, "the plan names an MPS server of nobody"};
  const auto daemon = ProcessRef::open(known->key.pid);
  if (!daemon || daemon->key().start_ticks != known->key.start_ticks)
    return Error{ErrorCode::gone, "the MPS control daemon has ended"};
  const MpsAddress address{*known->uid, known->pipe_directory};
  const pid_t pid = client.key().pid;
  const auto before = ask_mps_clients(address, server, deadline);
  if (!before) return Error(before.error()).within("the MPS control daemon");
  if (!has(*before, pid)) return Error{ErrorCode::refused, "the MPS control daemon does not list it any more"};
  if (client.exited()) return {};
  const auto told = ask_mps(address, fmt::format("terminate_client {} {}", server, pid), deadline);
  if (!told) return Error(told.error()).within("the MPS control daemon");
  if (client.exited()) return {};
  const auto after = ask_mps_clients(address, server, deadline);
  if (client.exited()) return {};
  if (!after) return Error(after.error()).within("the MPS control daemon");
  if (has(*after, pid)) return Error{ErrorCode::refused, "the MPS control daemon did not end its contexts"};
  return {};
}

}  // namespace vacate
