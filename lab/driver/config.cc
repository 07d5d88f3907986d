// SPDX-License-Identifier: Apache-2.0
// Fills in and checks a DriverConfig, so that everything behind it may rely on its values.
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/driver/driver.h"

namespace lab {

using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;

namespace {

constexpr std::size_t kMaxGpus = 64;
constexpr std::uint32_t kMaxMinor = 247;        // facts.md 2.1
constexpr std::uint64_t kMaxMib = 1ULL << 40U;  // keeps every sum of bytes far from overflow
constexpr std::uint32_t kFirstPciBus = 0x17;

Error malformed(std::size_t gpu, std::string_view what) {
  return Error{ErrorCode::malformed, fmt::format("gpu {}: {}", gpu, what)};
}

bool fits(const std::string& text, std::size_t field) { return !text.empty() && text.size() < field; }

/// DDDDDDDD:BB:DD.F in hexadecimal.
bool is_pci_id(std::string_view text) {
  const auto parts = vacate::split(text, ':');
  if (parts.size() != 3) return false;
  const auto slot = vacate::split(parts[2], '.');
  const auto is_hex = [](std::string_view part, std::size_t digits) {
    return part.size() == digits && vacate::parse_hex(part).has_value();
  };
  return slot.size() == 2 && is_hex(parts[0], 8) && is_hex(parts[1], 2) && is_hex(slot[0], 2) && is_hex(slot[1], 1);
}

void fill_in(GpuConfig& gpu, std::uint32_t index) {
  if (!gpu.minor) gpu.minor = index;
  if (gpu.pci.empty()) gpu.pci = fmt::format("00000000:{:02X}:00.0", kFirstPciBus + index);
  if (gpu.uuid.empty()) gpu.uuid = fmt::format("GPU-6c616200-0000-4000-8000-{:012x}", index + 1);
}

Result<void> check(const GpuConfig& gpu, std::size_t index) {
  if (*gpu.minor > kMaxMinor) return malformed(index, fmt::format("minor {} is above {}", *gpu.minor, kMaxMinor));
  if (!is_pci_id(gpu.pci)) return malformed(index, fmt::format("\"{}\" is no PCI id like 00000000:65:00.0", gpu.pci));
  if (!fits(gpu.uuid, sizeof(GpuQuery::uuid))) return malformed(index, "the uuid does not fit");
  if (!fits(gpu.name, sizeof(GpuQuery::name))) return malformed(index, "the name does not fit");
  if (gpu.utilization > 100) return malformed(index, "utilization is above 100 per cent");
  for (const std::uint64_t amount : {gpu.memory_mib, gpu.reserved_mib, gpu.baseline_mib, gpu.residue_mib}) {
    if (amount > kMaxMib) return malformed(index, fmt::format("{} MiB is more than any GPU has", amount));
  }
  if (gpu.reserved_mib + gpu.baseline_mib + gpu.residue_mib > gpu.memory_mib) {
    return malformed(index, "reserved, baseline and residue are more than its memory");
  }
  return {};
}

}  // namespace

std::string_view era_name(Era era) {
  switch (era) {
    case Era::e470:
      return "470";
    case Era::e510:
      return "510";
    case Era::e535_86:
      return "535.86";
    case Era::e535_98:
      return "535.98";
    case Era::e535_104:
      return "535.104";
    case Era::e550:
      return "550";
    case Era::e580:
      break;
  }
  return "580";
}

Result<DriverConfig> complete(DriverConfig config) {
  if (config.gpus.size() > kMaxGpus) return Error{ErrorCode::malformed, fmt::format("more than {} GPUs", kMaxGpus)};
  if (!fits(config.driver_version, sizeof(SystemReply::driver_version))) {
    return Error{ErrorCode::malformed, "the driver version does not fit"};
  }
  std::set<std::uint32_t> minors;
  std::set<std::string> ids;
  for (std::uint32_t index = 0; index < config.gpus.size(); ++index) {
    GpuConfig& gpu = config.gpus[index];
    fill_in(gpu, index);
    if (auto good = check(gpu, index); !good) return good.error();
    if (!minors.insert(*gpu.minor).second) return malformed(index, fmt::format("minor {} is taken", *gpu.minor));
    if (!ids.insert(gpu.pci).second) return malformed(index, fmt::format("PCI id {} is taken", gpu.pci));
    if (!ids.insert(gpu.uuid).second) return malformed(index, fmt::format("uuid {} is taken", gpu.uuid));
  }
  return config;
}

}  // namespace lab
