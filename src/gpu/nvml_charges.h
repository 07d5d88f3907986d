// SPDX-License-Identifier: Apache-2.0
// Whom the driver charges: the process lists of a GPU and of its MIG instances, merged into one charge a process
// (facts.md 1.6, 1.9). Runs in the driver child only. A list that cannot be had becomes a blind spot, never a guess.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "gpu/driver_session.h"
#include "gpu/nvml_library.h"
#include "gpu/nvml_processes.h"

namespace vacate::nvml {

/// More than any GPU has, for plausibility where the total is not known.
inline constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 50U;
/// Bytes as NVML gives them: all ones are "not available" (facts.md 1.5), the absurd is implausible.
[[nodiscard]] Reading<Bytes> read_amount(std::uint64_t bytes) noexcept;

/// Rows of the lists of one GPU, on their way to charges.
class ChargeTable {
 public:
  /// `instance`: whose list it is, for rows that do not say; kNoInstance: the whole GPU's. Returns how many rows had a
  /// number that no process can have; those are dropped.
  [[nodiscard]] unsigned add(const std::vector<ProcessRow>& rows, ContextKind kind, std::uint32_t instance);
  /// One a process, by pid. On one instance several rows show the same memory: the larger figure, never the sum. Memory
  /// on different instances adds up.
  [[nodiscard]] std::vector<DriverCharge> charges(unsigned gpu) const;

 private:
  struct Entry {
    Reading<Bytes> memory = Unknown::not_supported;
    std::vector<ContextKind> kinds;
  };
  std::map<std::pair<std::int32_t, std::uint32_t>, Entry> entries_;  ///< by pid and instance
};

/// Adds charges and blind spots of one GPU to `sample`. Returns what the lists said about its state; ok if nothing.
[[nodiscard]] GpuState sample_charges(const Library& library, Device device, const Gpu& gpu, DriverSample& sample);

}  // namespace vacate::nvml
