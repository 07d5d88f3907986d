// SPDX-License-Identifier: Apache-2.0
// The library's state between init and shutdown: the device files it holds and what it asks the driver through them.
// Thread-safe. Uses nothing but libc, for the library is loaded into programs of any kind.
#pragma once

#include "lab/driver/protocol.h"
#include "lab/nvml/abi.h"

namespace lab::nvml {

struct Device {
  std::uint32_t index;
};

/// Opens the control file and asks the driver how this library is to behave. Counted.
[[nodiscard]] Return begin_session(bool attach_gpus);
/// Closes every device file at the last call.
[[nodiscard]] Return end_session();

/// The driver as a whole; uninitialized outside a session.
[[nodiscard]] Return query_system(SystemReply& reply);
/// One GPU by index, whatever its state; attaches nothing.
[[nodiscard]] Return query_gpu(std::uint32_t index, GpuQuery& gpu);
/// The GPU behind a caller's handle: as query_gpu, and gpu_is_lost where it is.
[[nodiscard]] Return query_device(const Device* device, GpuQuery& gpu);
/// One page of a process list.
[[nodiscard]] Return query_processes(ProcessPage& page);

/// The handle of GPU `index`, which is attached first: its node is opened and stays open until the session ends.
[[nodiscard]] Return attach(std::uint32_t index, Device** device);

/// Path of the GPU's node in /dev, which is named by its minor.
struct NodePath {
  explicit NodePath(const GpuQuery& gpu);
  char text[32];
};

/// What a failed open() of a device file means (facts.md 1.4).
[[nodiscard]] Return meaning_of_open_error(int number);

}  // namespace lab::nvml
