// SPDX-License-Identifier: Apache-2.0
// The vendor's library, found by dlopen and never linked: one table of required and optional symbols. To be used in the
// driver child only: any call can block for ever, and loading it runs the vendor's constructors.
#pragma once

#include <string>

#include "base/result.h"
#include "gpu/nvml_abi.h"

namespace vacate::nvml {

/// Versions of one process list, each its own ABI; nullptr: this driver has none.
struct ProcessCalls {
  GetProcesses v3 = nullptr, v2 = nullptr, v1 = nullptr;
};

struct Library {
  /// unsupported: no such library, or one without the required calls. The message says what the loader said.
  [[nodiscard]] static Result<Library> load();

  // One of the three is there; count and handle are required; all others may be nullptr, which is "not supported".
  InitWithFlags init_with_flags = nullptr;
  Init init_v2 = nullptr, init_v1 = nullptr;
  GetCount count = nullptr;
  GetHandle handle = nullptr;
  Shutdown shutdown = nullptr;
  ErrorString error_string = nullptr;
  GetText driver_version = nullptr;
  GetDeviceText uuid = nullptr, name = nullptr;
  GetDeviceNumber minor = nullptr, persistence = nullptr;
  GetPci pci = nullptr;
  GetMemory memory = nullptr;
  GetMemoryV2 memory_v2 = nullptr;
  GetFields fields = nullptr;
  GetUtilization utilization = nullptr;
  GetMode mig_mode = nullptr;
  GetDeviceNumber most_instances = nullptr;  ///< of MIG, on a GPU
  GetPart instance = nullptr;                ///< handle of an instance of MIG, by number; 6: a hole
  GetDeviceNumber gpu_instance = nullptr;    ///< id of such a handle
  ProcessCalls compute, graphics, mps;

  /// Initialises without failing for want of GPUs where the library can.
  [[nodiscard]] Return init() const;
  /// The library's words for `code` with the number, for people.
  [[nodiscard]] std::string describe(Return code) const;
};

/// "Try the older call": these say that the front library knows the name and the driver behind it does not
/// (facts.md 1.1).
[[nodiscard]] constexpr bool is_fallback(Return code) noexcept {
  return code == kFunctionNotFound || code == kArgumentVersionMismatch || code == kNotSupported;
}

}  // namespace vacate::nvml
