// SPDX-License-Identifier: Apache-2.0
// GPUs and device nodes as plain values. A node is identified by number or inode, never by its path; a minor is not
// the index that nvidia-smi shows (facts.md 2.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"

namespace vacate {

/// The driver's own nodes, and those of its neighbours through which GPU memory is shared (facts.md 2.1): GDRCopy,
/// GPUDirect Storage, RDMA verbs. `dma_buf` is no node: an exported buffer of the driver, known by its exp_name.
enum class NodeRole {
  gpu,
  ctl,
  uvm,
  uvm_tools,
  modeset,
  caps,
  nvswitch,
  nvlink,
  imex,
  gdrcopy,
  storage,
  rdma,
  dma_buf,
  other,
};
/// "nvidia", "nvidiactl", "nvidia-uvm", ...: the word for the role in JSON and in sentences.
[[nodiscard]] std::string_view describe(NodeRole role) noexcept;

/// Does an open file of this role keep a client, and with it GPU memory, alive (facts.md 2.2)? False for nodes that
/// belong to the driver but pin no memory (capabilities, switches, tools).
[[nodiscard]] bool pins_memory(NodeRole role) noexcept;

/// One device node of a GPU driver that this machine has.
struct DeviceNode {
  NodeRole role = NodeRole::other;
  std::string path;                    ///< for display only
  std::optional<std::uint32_t> minor;  ///< of an nvidiaN node
  /// Character devices: the device number, equal for every node of that device in every container.
  std::optional<std::uint64_t> rdev;
  /// Anything else found under a known name in /dev: the file itself.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  bool operator==(const DeviceNode&) const = default;
};

enum class GpuState { ok, lost, reset_required, no_answer };
[[nodiscard]] std::string_view describe(GpuState state) noexcept;

struct GpuMemory {
  Reading<Bytes> total, used, reserved, free;
  bool operator==(const GpuMemory&) const = default;
};

/// One physical GPU. `index` is the order nvidia-smi shows (NVML); without NVML the order of PCI addresses.
struct Gpu {
  unsigned index = 0;
  std::string uuid;  ///< "GPU-..."; empty where nobody said
  std::string pci;   ///< "00000000:65:00.0", upper case, eight digits of domain
  Reading<std::uint32_t> minor;
  std::string name;
  GpuState state = GpuState::ok;
  GpuMemory memory;
  Reading<bool> persistence;
  Reading<std::uint32_t> recovery_action;  ///< NVML field 230: 0 none, 1 reset, 2 reboot (facts.md 1.9)
  Reading<std::uint32_t> utilization;      ///< per cent; shown, never a proof of anything (facts.md 1.7)
  Reading<bool> mig;                       ///< is split into instances
  /// Memory is the system's own: used may not fall after the last holder (facts.md 1.5). From numa_status of the
  /// module.
  bool unified_memory = false;

  bool operator==(const Gpu&) const = default;
};

/// Does a word of a person mean this GPU: its index as nvidia-smi shows it, a GPU- UUID or the beginning of one, a PCI
/// address in any usual spelling?
[[nodiscard]] bool names_gpu(std::string_view word, const Gpu& gpu);
/// Could the word mean a GPU of some machine?
[[nodiscard]] bool is_gpu_word(std::string_view word);

enum class DriverState { ok, absent, not_loaded, mismatch, denied, no_answer };
[[nodiscard]] std::string_view describe(DriverState state) noexcept;

struct Driver {
  std::string vendor = "nvidia";
  std::string version;
  DriverState state = DriverState::absent;
  std::string detail;  ///< for people: why the state is what it is
  bool operator==(const Driver&) const = default;
};

enum class ContextKind { compute, graphics, mps };
[[nodiscard]] std::string_view describe(ContextKind kind) noexcept;

/// The driver says: process `pid` is charged `memory` on GPU `gpu`. A hint only: the pid may be dead or somebody else's
/// by now (facts.md 1.7). Rows of several lists for one (gpu, pid) are merged: memory is counted once, kinds are kept.
struct DriverCharge {
  unsigned gpu = 0;  ///< index
  std::int32_t pid = 0;
  Reading<Bytes> memory;
  std::vector<ContextKind> kinds;  ///< sorted, no duplicates
  /// GPU instances of MIG that the process was listed with, sorted; empty without MIG.
  std::vector<std::uint32_t> instances = {};
  bool operator==(const DriverCharge&) const = default;
};

}  // namespace vacate
