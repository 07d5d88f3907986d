// SPDX-License-Identifier: Apache-2.0
// What the kernel module says about its GPUs in /proc/driver/nvidia: the way to map minor, PCI address and UUID without
// NVML and without opening a device (facts.md 2.5). No memory figures here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/device.h"

namespace vacate {

struct ProcDriver {
  bool present = false;  ///< /proc/driver/nvidia is there: the module is loaded
  std::string version;
  std::vector<Gpu> gpus;  ///< by PCI address, numbered in that order; state no_answer, nothing measured
};
[[nodiscard]] ProcDriver read_proc_driver();

/// One information file. Nothing without a bus location.
[[nodiscard]] std::optional<Gpu> parse_gpu_information(std::string_view text);
/// "580.95.05" of /proc/driver/nvidia/version.
[[nodiscard]] std::string parse_module_version(std::string_view text);
/// "0000:65:00.0", "00000000:65:00.0", any case, as "00000000:65:00.0" in upper case.
[[nodiscard]] std::optional<std::string> normalise_pci(std::string_view text);

/// Fills in what the driver's library did not say about a GPU (one that is lost says nothing) from the module's list.
void complete_from(const std::vector<Gpu>& known, std::vector<Gpu>& gpus);

}  // namespace vacate
