// SPDX-License-Identifier: Apache-2.0
// What actors and the NVML stand-in say to the simulated driver: ioctls on its device nodes. It plays the part of the
// vendor's private interface and copies none of it. Plain data only; every struct fits FUSE's restricted ioctl.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace lab {

enum class ListKind : std::uint32_t {
  none = 0,      // charged to nobody: managed memory (facts.md 1.5)
  compute = 1,   // in the compute list
  graphics = 2,  // in the graphics list
  mps = 3,       // in the MPS list
};

// On a control file: adds `bytes` on GPU `gpu_index` to the client of this control file. The first call makes the
// client and charges it to the caller's process (facts.md 1.6: the task that made the client, not who holds it later).
struct AllocateRequest {
  std::uint32_t gpu_index;
  ListKind list;
  std::uint64_t bytes;
  std::int64_t release_after_ms;  // memory falls this long after the last reference; -1: never
  std::uint32_t release_steps;    // in so many equal parts, at least 1
  std::uint32_t reserved;
};
static_assert(sizeof(AllocateRequest) == 32);

// On a control file: a token for RegisterRequest.
struct TokenReply {
  std::uint64_t token;
};
// On an nvidiaN or nvidia-uvm file: from now on this file holds a reference on the control file `token`
// (facts.md 2.2.2). An nvidiaN file can be registered with one control file, an nvidia-uvm file with several. On
// another control file: an import (facts.md 2.2.6). It keeps the memory of the client, not the client: after the last
// reference the client is in no list any more, but its memory falls only when the importing file is gone as well.
struct RegisterRequest {
  std::uint64_t token;
};

// On any node. kStuck: the caller is stuck in the driver until it gets a signal (that its thread does not block;
// SIGKILL always) and `after_ms` more; -1: for ever. kDelayFlush: from now on each close of a descriptor of this open
// file is answered `after_ms` late, so that a process that exits with it lingers without descriptors (facts.md 2.3);
// -1: for ever. kDelayExit: the same, but only of the next close by the caller's own process, as its exit makes one; 0
// takes it back. kAnswer: what waits for an answer on this open file gets it.
struct DelayRequest {
  std::int64_t after_ms;
};

// On the lab's own `control` file only.
struct GpuStateRequest {
  std::uint32_t gpu_index;
  std::uint32_t state;  // GpuState
};

// On a control file, for the NVML stand-in: everything about the driver as a whole.
struct SystemReply {
  std::uint32_t gpu_count;
  std::uint32_t nvml_mode;  // NvmlMode
  std::uint32_t era;        // Era
  std::uint32_t reserved;
  char driver_version[80];
};

struct GpuQuery {
  std::uint32_t index;  // in
  std::uint32_t minor;
  std::uint32_t state;                  // GpuState
  std::uint32_t memory_query;           // QueryState
  std::uint32_t process_query;          // QueryState
  std::uint32_t recovery;               // Recovery, the value of NVML field 230
  std::uint32_t utilization;            // per cent
  std::uint32_t persistence;            // 0 or 1
  std::uint64_t total, reserved, used;  // bytes; `used` without reserved
  char uuid[96];
  char name[96];
  char pci[32];  // 00000000:65:00.0
};

// One page of a GPU's process list as the caller may see it: pids already in the caller's pid namespace, or global
// ones, as the configuration says.
struct ProcessRow {
  std::uint32_t pid;
  std::uint32_t reserved;
  std::uint64_t bytes;  // all ones: not available
};
struct ProcessPage {
  std::uint32_t index;   // in
  ListKind list;         // in
  std::uint32_t first;   // in: rows to skip
  std::uint32_t total;   // out: rows there are
  std::uint32_t filled;  // out: rows in this page
  std::uint32_t reserved;
  ProcessRow rows[64];
};

enum class NvmlMode : std::uint32_t { ok, missing, not_loaded, mismatch, denied, hang, stuck, crash };
enum class Era : std::uint32_t { e470, e510, e535_86, e535_98, e535_104, e550, e580 };
enum class GpuState : std::uint32_t { ok, lost, reset_required };
enum class QueryState : std::uint32_t { ok, unsupported, denied };
enum class Recovery : std::uint32_t { none, gpu_reset, node_reboot };

inline constexpr unsigned long kAllocate = _IOW('v', 1, AllocateRequest);
inline constexpr unsigned long kToken = _IOR('v', 2, TokenReply);
inline constexpr unsigned long kRegister = _IOW('v', 3, RegisterRequest);
inline constexpr unsigned long kSystem = _IOR('v', 4, SystemReply);
inline constexpr unsigned long kGpu = _IOWR('v', 5, GpuQuery);
inline constexpr unsigned long kProcesses = _IOWR('v', 6, ProcessPage);
inline constexpr unsigned long kNeverAnswered = _IO('v', 7);  // the caller is stuck in the driver from here on
inline constexpr unsigned long kStuck = _IOW('v', 8, DelayRequest);
inline constexpr unsigned long kDelayFlush = _IOW('v', 9, DelayRequest);
inline constexpr unsigned long kSetGpuState = _IOW('v', 10, GpuStateRequest);
inline constexpr unsigned long kDelayExit = _IOW('v', 11, DelayRequest);
inline constexpr unsigned long kAnswer = _IO('v', 12);

}  // namespace lab
