// SPDX-License-Identifier: Apache-2.0
#include "attribute/reset_blockers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "attribute/programs.h"
#include "attribute/protection.h"
#include "model/origin.h"

namespace vacate {
namespace {

struct Way {
  std::string_view what;  ///< a program or a rule
  std::string_view text;
};

constexpr auto kByProgram = std::to_array<Way>({
    {"nvidia-persistenced", "turn persistence off: nvidia-smi -pm 0, or systemctl stop nvidia-persistenced"},
    {"nv-hostengine", "stop the host engine: systemctl stop nvidia-dcgm"},
    {"nv-fabricmanager", "drain the node first, then systemctl stop nvidia-fabricmanager"},
    {"nvidia-imex", "drain the node first, then systemctl stop nvidia-imex"},
    {"nvidia-powerd", "stop it: systemctl stop nvidia-powerd"},
});

constexpr auto kByRule = std::to_array<Way>({
    {"display-server", "log out, or systemctl stop display-manager"},
    {"compositor", "log out, or systemctl stop display-manager"},
    {"browser", "close the browser"},
    {"mps", "when its clients are gone: quit, to nvidia-cuda-mps-control"},
    {"mps-client", "terminate_client, to nvidia-cuda-mps-control"},
    {"device-plugin", "drain the node: kubectl drain"},
    {"container-runtime", "stop the container that it runs"},
    {"scheduler", "drain the node in the scheduler, then stop its daemon"},
    {"virtual-machine", "stop the virtual machine or sandbox"},
    {"suspended", "resume it, or let its owner end it"},
    {"importer", "restart it when nobody depends on it"},
});

template <std::size_t N>
std::string_view way_in(const std::array<Way, N>& ways, std::string_view what) {
  const auto* at = std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.what == what; });
  return at == ways.end() ? std::string_view() : at->text;
}

bool is_system_unit(std::string_view cgroup) { return cgroup.starts_with("/system.slice/"); }

// Where it was started tells how it is stopped: names from a control group are the kernel's, not the process's.
std::string way_by_origin(const Process& process) {
  const auto origin = parse_origin(process.cgroup);
  if (origin.container) return fmt::format("stop its container, {:.12}", *origin.container);
  if (origin.slurm_job) return fmt::format("end its job: scancel {}", *origin.slurm_job);
  if (origin.unit && origin.unit->ends_with(".service"))
    return fmt::format("stop its service: systemctl {}stop {}", is_system_unit(process.cgroup) ? "" : "--user ",
                       *origin.unit);
  return "stop it: it has device files open";
}

std::string way_of(const Process& process, const Holder& holder) {
  std::string_view way;
  if (process.exe.known() && holder.protection) way = way_in(kByProgram, base_name(*process.exe));
  if (way.empty() && holder.protection) way = way_in(kByRule, holder.protection->rule);
  return way.empty() ? way_by_origin(process) : std::string(way);
}

}  // namespace

std::vector<ResetBlocker> reset_blockers_of(unsigned index, const Snapshot& snapshot,
                                            const std::vector<Holder>& holders) {
  std::vector<ResetBlocker> blockers;
  for (const auto& holder : holders) {
    const bool is_here = std::any_of(holder.gpus.begin(), holder.gpus.end(),
                                     [&](const HolderOnGpu& place) { return place.index == index; });
    const auto* process = snapshot.find(holder.key.pid);
    if (!is_here || process == nullptr || (holder.pins_memory() && !holder.protection)) continue;
    if (is_query(*process))
      blockers.push_back({holder.key.pid, "nothing: it is a query that ends by itself; try again", true});
    else
      blockers.push_back({holder.key.pid, way_of(*process, holder), false});
  }
  return blockers;
}

}  // namespace vacate
