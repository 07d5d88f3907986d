// SPDX-License-Identifier: Apache-2.0
// See driver_setup.h.
#include "lab/machine/driver_setup.h"

namespace lab {
namespace {

GpuConfig gpu_config(const GpuSpec& spec) {
  GpuConfig gpu;
  gpu.memory_mib = spec.memory;
  gpu.reserved_mib = spec.reserved;
  gpu.baseline_mib = spec.baseline;
  gpu.residue_mib = spec.residue;
  gpu.name = spec.name;
  gpu.minor = static_cast<std::uint32_t>(spec.minor);
  gpu.state = spec.state == GpuState::lost ? GpuState::ok : spec.state;
  gpu.memory_query = spec.memory_query;
  gpu.process_query = spec.process_query;
  gpu.recovery = spec.recovery;
  gpu.utilization = static_cast<std::uint32_t>(spec.utilization);
  return gpu;
}

ProcessMemory figures_of(MemoryFigures figures) {
  switch (figures) {
    case MemoryFigures::na:
      return ProcessMemory::na;
    case MemoryFigures::zero:
      return ProcessMemory::zero;
    case MemoryFigures::ok:
      return ProcessMemory::ok;
  }
  return ProcessMemory::ok;
}

}  // namespace

vacate::Result<DriverConfig> driver_config(const Case& scenario) {
  DriverConfig config;
  config.gpus.clear();
  for (const GpuSpec& gpu : scenario.machine.gpus) config.gpus.push_back(gpu_config(gpu));
  config.driver_version = scenario.machine.driver;
  config.era = scenario.driver.era;
  config.nvml = scenario.driver.nvml;
  config.pids = scenario.driver.pids == PidMode::global ? PidPolicy::global : PidPolicy::caller;
  config.process_memory = figures_of(scenario.driver.process_memory);
  config.garbage_pids = scenario.driver.garbage_pids;
  return complete(std::move(config));
}

}  // namespace lab
