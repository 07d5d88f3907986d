// SPDX-License-Identifier: Apache-2.0
#include "plan/mps.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/wording.h"

namespace vacate {
namespace {

constexpr std::string_view kServer = "/nvidia-cuda-mps-server";
constexpr std::string_view kRule = "mps-client";
constexpr std::string_view kComm = "nvidia-cuda-mps";  // of control daemon and server alike: comm has 15 bytes

// Another user's daemon could claim anything about a process that is not that user's.
bool is_believed(const MpsDaemon& daemon, const Process& client) {
  if (!daemon.uid.known()) return false;
  return *daemon.uid == 0 || (client.uid.known() && *client.uid == *daemon.uid);
}

const MpsDaemon* daemon_of_server(const Snapshot& snapshot, pid_t server) {
  for (const auto& daemon : snapshot.mps_daemons) {
    for (const auto& known : daemon.servers)
      if (known.pid == server) return &daemon;
  }
  return nullptr;
}

bool is_server(const Snapshot& snapshot, pid_t pid) {
  const auto* process = snapshot.find(pid);
  const bool is_called_so = process != nullptr && process->exe.known() && process->exe->ends_with(kServer);
  return is_called_so || daemon_of_server(snapshot, pid) != nullptr;
}

/// Who is a client of any server by the word of the driver, or of this one by that of its daemon; sorted.
std::vector<pid_t> living_clients(const Snapshot& snapshot, pid_t server) {
  std::vector<pid_t> clients;
  for (const auto& row : snapshot.charges)
    if (std::find(row.kinds.begin(), row.kinds.end(), ContextKind::mps) != row.kinds.end()) clients.push_back(row.pid);
  if (const auto* daemon = daemon_of_server(snapshot, server)) {
    for (const auto& known : daemon->servers)
      if (known.pid == server) clients.insert(clients.end(), known.clients.begin(), known.clients.end());
  }
  std::erase_if(clients, [&](pid_t pid) {
    const auto* client = snapshot.find(pid);
    return pid == server || client == nullptr || is_gone(*client);
  });
  std::sort(clients.begin(), clients.end());
  clients.erase(std::unique(clients.begin(), clients.end()), clients.end());
  return clients;
}

std::string clients_first(const std::vector<pid_t>& left) {
  return fmt::format("its clients would be left undefined, end them first or with it: {}", list_of(left));
}

void refuse(Step& step, const std::string& why) {
  step.action = Action::refuse;
  step.rule = "mps";
  step.ask = Ask::at_once;
  step.terms = {};
  step.mps_server = 0;
  step.unit.reset();
  step.thaw.reset();
  step.because.insert(step.because.begin(), why);
}

}  // namespace

bool is_mps_client(const Member& member) noexcept {
  const auto& protection = member.protection();
  return protection && !protection->absolute && protection->source.empty() && protection->rule == kRule;
}

std::variant<pid_t, std::string> mps_way(const Snapshot& snapshot, const Member& client, const FreeRequest& request) {
  const auto* process = snapshot.find(client.key().pid);
  if (process == nullptr) return "it is gone";
  if (request.term_only || client.terms().term_only)
    return "the daemon would cut off its work, which is more than TERM: not with TERM only";
  if (snapshot.mps_daemons.empty()) return "no control daemon was found here";
  std::string why = "its control daemon does not list it";
  for (const auto& daemon : snapshot.mps_daemons) {
    if (!daemon.answered.known() || !*daemon.answered) {
      why = fmt::format("the control daemon, process {}, {}", daemon.key.pid,
                        daemon.detail.empty() ? "does not answer" : daemon.detail);
      continue;
    }
    const auto* server = daemon.server_of(process->key.pid);
    if (server == nullptr) continue;
    if (is_believed(daemon, *process)) return server->pid;
    return fmt::format("the control daemon that lists it, process {}, is another user's", daemon.key.pid);
  }
  return why;
}

bool may_have_mps_server(const Snapshot& snapshot) {
  return std::any_of(snapshot.processes.begin(), snapshot.processes.end(),
                     [](const Process& process) { return process.comm == kComm && !is_gone(process); });
}

std::vector<pid_t> clients_left_by(const Snapshot& snapshot, const Process& server, const FreeRequest& request) {
  std::vector<pid_t> left;
  if (!server.exe.known() || !server.exe->ends_with(kServer)) return left;
  const auto& selection = request.selection;
  const bool takes_all = request.scope == Scope::all && selection.pids.empty() && selection.all_gpus;
  for (const auto& row : snapshot.charges) {
    const auto* client = snapshot.find(row.pid);
    const bool is_client = std::find(row.kinds.begin(), row.kinds.end(), ContextKind::mps) != row.kinds.end();
    if (!is_client || takes_all || client == nullptr || is_gone(*client)) continue;
    const bool is_named = std::any_of(selection.pids.begin(), selection.pids.end(),
                                      [&](const ProcessSelector& each) { return each.matches(client->key); });
    if (!is_named) left.push_back(row.pid);
  }
  std::sort(left.begin(), left.end());
  left.erase(std::unique(left.begin(), left.end()), left.end());
  return left;
}

Plan spare_mps_servers(Plan plan, const Snapshot& snapshot) {
  const auto is_ended = [&](pid_t pid) {
    return std::any_of(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& step) { return step.key.pid == pid && is_ending(step.action) && !step.unit; });
  };
  for (auto& server : plan.steps) {
    if (!is_ending(server.action) || !is_server(snapshot, server.key.pid)) continue;
    auto left = living_clients(snapshot, server.key.pid);
    std::erase_if(left, is_ended);
    if (left.empty()) continue;
    const auto why = clients_first(left);
    const auto unit = server.unit ? server.unit->name : "";
    refuse(server, why);
    for (auto& other : plan.steps)
      if (other.unit && other.unit->name == unit)
        refuse(other, fmt::format("a stop of {} would end process {}, a server of MPS: {}", unit, server.key.pid, why));
  }
  return plan;
}

std::string mps_sentence(const Snapshot& snapshot, pid_t server) {
  const auto* daemon = daemon_of_server(snapshot, server);
  return fmt::format(
      "a client of the MPS server {}: its control daemon{} is asked to end its contexts (terminate_client), and it is "
      "asked to end itself once it is no client any more",
      server, daemon != nullptr ? fmt::format(", process {},", daemon->key.pid) : "");
}

}  // namespace vacate
