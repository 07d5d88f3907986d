// SPDX-License-Identifier: Apache-2.0
#include "probe/mps.h"

#include <algorithm>
#include <optional>

#include "os/mps_control.h"
#include "os/users.h"

namespace vacate {
namespace {

constexpr std::string_view kComm = "nvidia-cuda-mps";  // comm has 15 bytes: of control daemon and server alike
constexpr std::string_view kControl = "/nvidia-cuda-mps-control";
constexpr std::string_view kServer = "/nvidia-cuda-mps-server";
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::size_t kMostDaemons = 16;

/// Everybody of that name, with details.
std::vector<Process> namesakes(const ProcDirectory& root, const std::vector<Process>& processes) {
  std::vector<Process> found;
  std::optional<DetailReader> reader;
  for (const auto& process : processes) {
    if (process.comm != kComm || is_gone(process)) continue;
    found.push_back(process);
    if (process.detailed) continue;
    if (!reader) reader.emplace(root, Users::read());
    if (!reader->read(found.back())) found.pop_back();
  }
  return found;
}

bool runs(const Process& process, std::string_view program) {
  return process.exe.known() && process.exe->ends_with(program);
}

void ask(MpsDaemon& daemon, const std::vector<Process>& known, const std::vector<Process>& everybody) {
  const auto deadline = Deadline::after(kPatience);
  const auto fail = [&](const Error& error) {
    daemon.answered = error.code == ErrorCode::timed_out ? Unknown::timed_out : Unknown::failed;
    daemon.detail = error.code == ErrorCode::timed_out ? "does not answer" : "cannot be asked: " + error.message;
  };
  const auto directory = read_pipe_directory(daemon.key, deadline);
  if (!directory) return fail(directory.error());
  daemon.pipe_directory = *directory;
  const MpsAddress address{*daemon.uid, *directory};
  const auto servers = ask_mps_servers(address, deadline);
  if (!servers) return fail(servers.error());
  for (const pid_t server : *servers) {
    const bool is_one = std::any_of(known.begin(), known.end(), [&](const Process& process) {
      return process.key.pid == server && runs(process, kServer);
    });
    if (!is_one) continue;
    auto clients = ask_mps_clients(address, server, deadline);
    if (!clients) return fail(clients.error());
    std::erase_if(*clients, [&](pid_t client) {
      return std::none_of(everybody.begin(), everybody.end(),
                          [&](const Process& process) { return process.key.pid == client && !is_gone(process); });
    });
    daemon.servers.push_back({server, *std::move(clients)});
  }
  daemon.answered = true;
}

}  // namespace

bool has_mps_clients(const std::vector<DriverCharge>& charges) noexcept {
  return std::any_of(charges.begin(), charges.end(), [](const DriverCharge& row) {
    return std::find(row.kinds.begin(), row.kinds.end(), ContextKind::mps) != row.kinds.end();
  });
}

void ask_mps_daemons(const ProcDirectory& root, const std::vector<Process>& processes, Snapshot& snapshot) {
  if (!has_mps_clients(snapshot.charges)) return;
  const auto known = namesakes(root, processes);
  for (const auto& process : known) {
    // Elsewhere the numbers that it says are others, and so is the folder.
    const bool is_here = process.pid_namespace == snapshot.host.pid_namespace;
    if (!runs(process, kControl) || !is_here || !process.uid.known()) continue;
    if (snapshot.mps_daemons.size() >= kMostDaemons) break;
    MpsDaemon daemon;
    daemon.key = process.key;
    daemon.uid = process.uid;
    ask(daemon, known, processes);
    snapshot.mps_daemons.push_back(std::move(daemon));
  }
}

}  // namespace vacate
