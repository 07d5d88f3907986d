// SPDX-License-Identifier: Apache-2.0
#include "probe/look_at_processes.h"

#include <fmt/format.h>

#include "probe/scan_bpf.h"

namespace vacate {
namespace {

std::vector<pid_t> with_memory(const std::vector<Process>& processes) {
  std::vector<pid_t> pids;
  for (const auto& process : processes)
    if (!process.kernel_thread && !is_gone(process)) pids.push_back(process.key.pid);
  return pids;
}

Mappings read_mappings(const Walker& walker, const DeviceNodes& nodes, const std::vector<std::uint64_t>& watched) {
  return MappingScan(with_memory(walker.result().processes), nodes, watched).finish();
}

ProcessLook look_by_procfs(Walker& walker, const DeviceNodes& nodes, const std::vector<std::uint64_t>& watched,
                           std::string why) {
  MappingScan mappings(with_memory(walker.result().processes), nodes, watched);
  walker.walk_all_descriptors();
  return {mappings.finish(), {ScanMethod::procfs, std::move(why)}};
}

}  // namespace

bool is_worth_bpf(const ProcDirectory& root, const std::vector<Process>& processes) {
  // Measured (docs/performance.md): the start, and what /proc takes for one of each.
  static constexpr std::uint64_t kStart = 3500, kProcess = 30, kDescriptor = 3;  // microseconds
  // Before 6.2 the size is 0.
  static constexpr std::uint64_t kUsual = 10;
  std::uint64_t cost = 0;
  for (const auto& process : processes) {
    if (process.kernel_thread || is_gone(process)) continue;
    const auto count = read_size(root.descriptor(), (std::to_string(process.key.pid) + "/fd").c_str()).value_or(0);
    cost += kProcess + kDescriptor * (count == 0 ? kUsual : count);
    if (cost > kStart) return true;
  }
  return false;
}

ProcessLook look_at_processes(Walker& walker, const DeviceNodes& nodes, const std::vector<std::uint64_t>& watched,
                              ScanMethod method) {
  if (method == ScanMethod::procfs) return look_by_procfs(walker, nodes, watched, "it was asked for");
  if (method == ScanMethod::automatic && !is_worth_bpf(walker.root(), walker.result().processes))
    return look_by_procfs(walker, nodes, watched, "so few descriptors are read faster than BPF programs are loaded");
  auto scan = BpfScan::start(walker, nodes, watched);
  if (!scan) return look_by_procfs(walker, nodes, watched, scan.error().message);
  if (const auto walked = scan->walk_descriptors(); !walked)
    return look_by_procfs(walker, nodes, watched, walked.error().message);
  auto mappings = scan->finish_mappings();
  if (mappings)
    return {*std::move(mappings), {ScanMethod::bpf, "programs in the kernel report descriptors and mappings"}};
  // One process that does not let go of its lock stops the walk over all. /proc is read process by process.
  return {read_mappings(walker, nodes, watched),
          {ScanMethod::bpf, fmt::format("but for mappings, which were read in /proc: {}", mappings.error().message)}};
}

}  // namespace vacate
