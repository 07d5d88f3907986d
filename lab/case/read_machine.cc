// SPDX-License-Identifier: Apache-2.0
// Reads [machine], [[gpu]] and [driver].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "lab/case/read.h"

namespace lab {
namespace {

using namespace std::string_view_literals;

constexpr std::int64_t kMaxGpus = 64;

constexpr std::array kGpuStates{std::pair{"ok"sv, GpuState::ok}, std::pair{"lost"sv, GpuState::lost},
                                std::pair{"reset-required"sv, GpuState::reset_required}};
constexpr std::array kMemoryQueries{std::pair{"ok"sv, QueryState::ok},
                                    std::pair{"unsupported"sv, QueryState::unsupported}};
constexpr std::array kProcessQueries{std::pair{"ok"sv, QueryState::ok},
                                     std::pair{"unsupported"sv, QueryState::unsupported},
                                     std::pair{"denied"sv, QueryState::denied}};
constexpr std::array kRecoveries{std::pair{"none"sv, Recovery::none}, std::pair{"gpu-reset"sv, Recovery::gpu_reset},
                                 std::pair{"node-reboot"sv, Recovery::node_reboot}};
constexpr std::array kNvmlModes{
    std::pair{"ok"sv, NvmlMode::ok},         std::pair{"missing"sv, NvmlMode::missing},
    std::pair{"stuck"sv, NvmlMode::stuck},   std::pair{"not-loaded"sv, NvmlMode::not_loaded},
    std::pair{"denied"sv, NvmlMode::denied}, std::pair{"mismatch"sv, NvmlMode::mismatch},
    std::pair{"crash"sv, NvmlMode::crash},   std::pair{"hang"sv, NvmlMode::hang}};
constexpr std::array kEras{std::pair{"470"sv, Era::e470},       std::pair{"510"sv, Era::e510},
                           std::pair{"535.86"sv, Era::e535_86}, std::pair{"535.98"sv, Era::e535_98},
                           std::pair{"550"sv, Era::e550},       std::pair{"535.104"sv, Era::e535_104},
                           std::pair{"580"sv, Era::e580}};
constexpr std::array kPidModes{std::pair{"caller"sv, PidMode::caller}, std::pair{"global"sv, PidMode::global}};
constexpr std::array kMemoryFigures{std::pair{"ok"sv, MemoryFigures::ok}, std::pair{"na"sv, MemoryFigures::na},
                                    std::pair{"zero"sv, MemoryFigures::zero}};

Mib read_mib(TableReader& table, std::string_view key, Mib fallback) {
  return static_cast<Mib>(table.integer(key, {0, kMaxMib}, static_cast<std::int64_t>(fallback)));
}

void read_minors(TableReader& table, MachineSpec& machine) {
  const TomlMember* member = table.find("minors");
  if (member == nullptr) return;
  const auto* items = member->value.as<TomlNode::Array>();
  if (items == nullptr) return table.wrong_type(member->value, "minors", "an array of integers");
  if (items->size() != machine.gpus.size()) {
    table.complaints().add(member->value.at, fmt::format("'minors' has {} numbers for {} GPUs: give one for each",
                                                         items->size(), machine.gpus.size()));
    return;
  }
  std::set<int> seen;
  for (std::size_t index = 0; index < items->size(); ++index) {
    const TomlNode& item = items->at(index);
    const auto minor = table.integer_in(item, "minors", {0, 254});  // 255 is nvidiactl
    if (!minor) continue;
    machine.gpus[index].minor = static_cast<int>(*minor);
    if (!seen.insert(machine.gpus[index].minor).second) {
      table.complaints().add(item.at, fmt::format("minor {} is there twice: each GPU has one of its own", *minor));
    }
  }
}

void read_machine_table(const TomlNode& node, MachineSpec& machine, Complaints& complaints) {
  TableReader table(node, "[machine]", complaints);
  GpuSpec gpu;
  gpu.memory = read_mib(table, "memory", gpu.memory);
  gpu.reserved = read_mib(table, "reserved", gpu.reserved);
  gpu.baseline = read_mib(table, "baseline", gpu.baseline);
  gpu.name = table.text("name", "NVIDIA RTX PRO 6000 Blackwell");
  machine.driver = table.text("driver", machine.driver);
  machine.hidepid = table.boolean("hidepid", false);
  const auto count = table.integer("gpus", {0, kMaxGpus}, 1);
  for (int index = 0; index < count; ++index) {
    gpu.index = gpu.minor = index;
    machine.gpus.push_back(gpu);
  }
  read_minors(table, machine);
  table.finish();
}

void read_override(const TomlNode& node, MachineSpec& machine, std::set<std::int64_t>& seen, Complaints& complaints) {
  TableReader table(node, "[[gpu]]", complaints);
  GpuSpec unused;
  GpuSpec* gpu = &unused;
  if (table.find("index") == nullptr) {
    table.missing("index", "say which GPU it is about");
  } else {
    const auto index = table.integer("index", {0, kMaxGpus - 1}, 0);
    if (!seen.insert(index).second) {
      complaints.add(table.at("index"), fmt::format("GPU {} has two [[gpu]] entries: put them into one", index));
    }
    if (check_gpu(index, machine, table.at("index"), complaints)) gpu = &machine.gpus[static_cast<std::size_t>(index)];
  }
  gpu->memory = read_mib(table, "memory", gpu->memory);
  gpu->residue = read_mib(table, "residue", 0);
  gpu->utilization = static_cast<int>(table.integer("utilization", {0, 100}, 0));
  gpu->state = table.word<GpuState>("state", kGpuStates, GpuState::ok);
  gpu->memory_query = table.word<QueryState>("memory_query", kMemoryQueries, QueryState::ok);
  gpu->process_query = table.word<QueryState>("process_query", kProcessQueries, QueryState::ok);
  gpu->recovery = table.word<Recovery>("recovery", kRecoveries, Recovery::none);
  table.finish();
}

void check_memory(const GpuSpec& gpu, Position at, Complaints& complaints) {
  const Mib taken = gpu.baseline + gpu.reserved + gpu.residue;
  if (taken <= gpu.memory) return;
  complaints.add(at, fmt::format("GPU {} has {} MiB, but baseline, reserved and residue make {}: lower them or raise "
                                 "'memory'",
                                 gpu.index, gpu.memory, taken));
}

void read_garbage_pids(TableReader& table, DriverSpec& driver) {
  const TomlMember* member = table.find("garbage_pids");
  if (member == nullptr) return;
  const auto* items = member->value.as<TomlNode::Array>();
  if (items == nullptr) return table.wrong_type(member->value, "garbage_pids", "an array of integers");
  for (const TomlNode& item : *items) {
    const auto pid = table.integer_in(item, "garbage_pids", {0, UINT32_MAX});
    if (pid) driver.garbage_pids.push_back(static_cast<std::uint32_t>(*pid));
  }
}

void read_driver_table(const TomlNode& node, DriverSpec& driver, Complaints& complaints) {
  TableReader table(node, "[driver]", complaints);
  driver.nvml = table.word<NvmlMode>("nvml", kNvmlModes, driver.nvml);
  driver.era = table.word<Era>("era", kEras, driver.era);
  driver.pids = table.word<PidMode>("pids", kPidModes, driver.pids);
  driver.process_memory = table.word<MemoryFigures>("process_memory", kMemoryFigures, driver.process_memory);
  read_garbage_pids(table, driver);
  table.finish();
}

}  // namespace

bool check_gpu(std::int64_t index, const MachineSpec& machine, Position at, Complaints& complaints) {
  const auto count = static_cast<std::int64_t>(machine.gpus.size());
  if (index >= 0 && index < count) return true;
  const std::string there = count == 0 ? "the machine has none" : fmt::format("the machine has 0 to {}", count - 1);
  complaints.add(at, fmt::format("there is no GPU {}: {}, raise 'gpus' in [machine] or name another", index, there));
  return false;
}

void read_machine(TableReader& root, Case& result) {
  const TomlNode nothing{TomlNode::Table{}, root.at()};
  const TomlMember* machine = root.find("machine");
  read_machine_table(machine != nullptr ? machine->value : nothing, result.machine, root.complaints());
  std::set<std::int64_t> seen;
  const auto overrides = root.tables("gpu");
  for (const TomlNode& node : overrides) read_override(node, result.machine, seen, root.complaints());
  const Position at = !overrides.empty() ? overrides.front().at : machine != nullptr ? machine->at : root.at();
  for (const GpuSpec& gpu : result.machine.gpus) check_memory(gpu, at, root.complaints());
  if (const TomlMember* driver = root.find("driver"))
    read_driver_table(driver->value, result.driver, root.complaints());
}

}  // namespace lab
