// SPDX-License-Identifier: Apache-2.0
// One round of questions to NVML, turned into a DriverSample. Runs in the driver child only: every call can block for
// ever. An error of one question costs that answer, never the others.
#pragma once

#include <optional>

#include "gpu/driver_session.h"
#include "gpu/nvml_library.h"
#include "gpu/nvml_processes.h"

namespace vacate::nvml {

/// Loads and initialises on the first call, again as long as that fails (a booting driver); keeps the GPUs initialised
/// then.
class Sampler {
 public:
  Sampler() = default;
  /// With a table that somebody else has filled.
  explicit Sampler(Library library) : library_(library) {}

  /// Loads and initialises ahead of the first sample: it takes longest (facts.md 1.10).
  void warm_up() {
    Driver ignored;
    (void)prepare(ignored);
  }
  [[nodiscard]] DriverSample sample();
  void shut_down();

 private:
  [[nodiscard]] bool prepare(Driver& driver);
  void sample_gpu(unsigned index, DriverSample& sample) const;

  std::optional<Library> library_;
  bool initialised_ = false;
};

/// What a failed nvmlInit says about the driver (facts.md 1.4).
[[nodiscard]] DriverState state_of_init(Return code) noexcept;
/// What a failed call about one GPU says about it; ok where it says nothing.
[[nodiscard]] GpuState state_of_call(Return code) noexcept;
/// Why a figure is missing.
[[nodiscard]] Unknown reason_of(Return code) noexcept;

/// NVML's memory, `used` always without what is reserved: the two versions and the header's own comments disagree
/// (facts.md 1.5).
[[nodiscard]] GpuMemory memory_from(const MemoryV2& memory) noexcept;
[[nodiscard]] GpuMemory memory_from(const Memory& memory) noexcept;

}  // namespace vacate::nvml
