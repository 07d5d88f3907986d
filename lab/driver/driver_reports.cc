// SPDX-License-Identifier: Apache-2.0
// What driver_core.h tells: the system, a GPU, its process lists (facts.md 1.6, 1.7) and the lab's own state as JSON.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "lab/driver/driver_core.h"

namespace lab {

namespace {

constexpr std::size_t kMaxListedPids = 950;  // facts.md 1.6: the rest is cut off silently
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

/// Copies into a field of the protocol, which complete() made sure is long enough.
template <std::size_t Size>
void put(char (&field)[Size], const std::string& text) {
  std::memset(field, 0, Size);
  std::memcpy(field, text.data(), std::min(text.size(), Size - 1));
}

bool has_in_list(const Client& client, std::uint32_t gpu, ListKind kind) {
  return std::any_of(client.allocations.begin(), client.allocations.end(),
                     [&](const Allocation& part) { return part.gpu == gpu && part.list == kind; });
}

/// What is charged to the client on `gpu`, whichever list it is in.
std::uint64_t charged(const Client& client, std::uint32_t gpu) {
  std::uint64_t sum = 0;
  for (const Allocation& part : client.allocations) {
    if (part.gpu == gpu && part.list != ListKind::none) sum += part.bytes;
  }
  return sum;
}

}  // namespace

std::uint64_t DriverCore::used(std::uint32_t gpu, Clock::time_point now) const {
  const GpuConfig& about = config_.gpus[gpu];
  return vacate::mebibytes(about.baseline_mib + about.residue_mib).count + clients_.used(gpu, now);
}

SystemReply DriverCore::system() const {
  SystemReply reply{};
  reply.gpu_count = static_cast<std::uint32_t>(config_.gpus.size());
  reply.nvml_mode = static_cast<std::uint32_t>(config_.nvml);
  reply.era = static_cast<std::uint32_t>(config_.era);
  put(reply.driver_version, config_.driver_version);
  return reply;
}

int DriverCore::describe(GpuQuery& query) const {
  if (query.index >= config_.gpus.size()) return EINVAL;
  const GpuConfig& gpu = config_.gpus[query.index];
  query.minor = gpu.minor.value_or(query.index);
  query.state = static_cast<std::uint32_t>(gpu.state);
  query.memory_query = static_cast<std::uint32_t>(gpu.memory_query);
  query.process_query = static_cast<std::uint32_t>(gpu.process_query);
  query.recovery = static_cast<std::uint32_t>(gpu.recovery);
  query.utilization = gpu.utilization;
  query.persistence = gpu.persistence ? 1 : 0;
  query.total = vacate::mebibytes(gpu.memory_mib).count;
  query.reserved = vacate::mebibytes(gpu.reserved_mib).count;
  query.used = used(query.index, Clock::now());
  put(query.uuid, gpu.uuid);
  put(query.name, gpu.name);
  put(query.pci, gpu.pci);
  return 0;
}

int DriverCore::list(pid_t caller_tid, ProcessPage& page) {
  if (page.index >= config_.gpus.size() || page.list == ListKind::none || page.list > ListKind::mps) return EINVAL;
  const auto caller = processes_.identify(caller_tid);
  if (!caller) return EPERM;
  const auto listed = rows(page.index, page.list, *caller);
  page.total = static_cast<std::uint32_t>(listed.size());
  page.filled = 0;
  for (std::size_t row = page.first; row < listed.size() && page.filled < std::size(page.rows); ++row) {
    page.rows[page.filled++] = listed[row];
  }
  return 0;
}

std::vector<ProcessRow> DriverCore::rows(std::uint32_t gpu, ListKind kind, const ProcessIdentity& caller) const {
  const auto number_for_caller = [&](const ProcessIdentity& process) -> std::optional<pid_t> {
    if (config_.pids == PidPolicy::global) return process.machine_number();
    return process.number_in(caller.innermost_namespace());
  };
  // In the order in which clients were made. The driver knows numbers only: a dead process and the one that has its
  // number now are one row.
  std::vector<ProcessRow> listed;
  const auto find = [&](std::uint32_t pid) {
    return std::find_if(listed.begin(), listed.end(), [&](const ProcessRow& row) { return row.pid == pid; });
  };
  for (const auto& [token, client] : clients_.all()) {
    if (!client.listed() || !has_in_list(client, gpu, kind)) continue;
    const auto pid = number_for_caller(*client.opener);
    if (pid && find(static_cast<std::uint32_t>(*pid)) == listed.end()) {
      listed.push_back({.pid = static_cast<std::uint32_t>(*pid), .reserved = 0, .bytes = 0});
    }
  }
  for (const auto& [token, client] : clients_.all()) {
    if (!client.listed()) continue;
    const auto pid = number_for_caller(*client.opener);
    if (!pid) continue;
    const auto row = find(static_cast<std::uint32_t>(*pid));
    if (row != listed.end()) row->bytes += charged(client, gpu);
  }
  if (kind == ListKind::compute) {
    for (const std::uint32_t pid : config_.garbage_pids) listed.push_back({.pid = pid, .reserved = 0, .bytes = 0});
  }
  if (listed.size() > kMaxListedPids) listed.resize(kMaxListedPids);
  for (ProcessRow& row : listed) {
    if (config_.process_memory == ProcessMemory::na) row.bytes = kNotAvailable;
    if (config_.process_memory == ProcessMemory::zero) row.bytes = 0;
  }
  return listed;
}

std::string DriverCore::state_text() const {
  const auto now = Clock::now();
  auto gpus = nlohmann::json::array();
  for (std::uint32_t index = 0; index < config_.gpus.size(); ++index) {
    const GpuConfig& gpu = config_.gpus[index];
    const auto released = clients_.last_release(index).value_or(Clock::time_point{}).time_since_epoch();
    const vacate::Bytes in_use{used(index, now)};
    gpus.push_back({{"index", index},
                    {"minor", gpu.minor.value_or(index)},
                    {"state", static_cast<std::uint32_t>(gpu.state)},
                    {"total_mib", gpu.memory_mib},
                    {"total", vacate::mebibytes(gpu.memory_mib).count},
                    {"reserved_mib", gpu.reserved_mib},
                    {"reserved", vacate::mebibytes(gpu.reserved_mib).count},
                    {"used_mib", in_use.mib()},
                    {"used", in_use.count},
                    {"falling", clients_.ownerless(index, now)},
                    {"last_release_ns", std::chrono::nanoseconds(released).count()}});
  }
  auto clients = nlohmann::json::array();
  for (const auto& [token, client] : clients_.all()) {
    if (!client.listed()) continue;
    auto memory = nlohmann::json::array();
    for (const Allocation& part : client.allocations) {
      memory.push_back({{"gpu", part.gpu}, {"list", static_cast<std::uint32_t>(part.list)}, {"bytes", part.bytes}});
    }
    clients.push_back({{"token", token},
                       {"ns_pids", client.opener->numbers},
                       {"references", client.references},
                       {"memory", std::move(memory)}});
  }
  return nlohmann::json{{"gpus", std::move(gpus)}, {"clients", std::move(clients)}}.dump(2) + "\n";
}

}  // namespace lab
