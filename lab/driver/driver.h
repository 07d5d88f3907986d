// SPDX-License-Identifier: Apache-2.0
// The simulated GPU driver as its users see it: start() puts a directory of device nodes in place, served by a process
// of its own, and read_driver_state() tells from any process what the driver thinks it holds. It knows nothing about
// cases, actors or the product, and it ends no process but its own server.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/driver/protocol.h"

namespace lab {

/// In whose numbers the driver lists processes (facts.md 1.7).
enum class PidPolicy {
  caller,  ///< the caller's pid namespace; what is not visible there is left out
  global,  ///< the machine's top pid namespace: one below the server's, whoever asks
};

/// What the driver says about the memory of one process.
enum class ProcessMemory { ok, na, zero };

/// One simulated GPU. Amounts are MiB.
struct GpuConfig {
  std::uint64_t memory_mib = 97887;
  std::uint64_t reserved_mib = 0;
  std::uint64_t baseline_mib = 4;  ///< in use while nobody holds the GPU
  std::uint64_t residue_mib = 0;   ///< held by no process from the start
  std::string name = "NVIDIA RTX PRO 6000 Blackwell";
  std::optional<std::uint32_t> minor;  ///< nothing: the GPU's index
  std::string pci;                     ///< "00000000:65:00.0"; empty: made up from the index
  std::string uuid;                    ///< "GPU-..."; empty: made up from the index
  GpuState state = GpuState::ok;
  QueryState memory_query = QueryState::ok;
  QueryState process_query = QueryState::ok;
  Recovery recovery = Recovery::none;
  std::uint32_t utilization = 0;  ///< per cent
  bool persistence = true;
};

struct DriverConfig {
  std::vector<GpuConfig> gpus = {GpuConfig{}};
  std::string driver_version = "580.95.05";
  Era era = Era::e580;
  NvmlMode nvml = NvmlMode::ok;
  PidPolicy pids = PidPolicy::caller;
  ProcessMemory process_memory = ProcessMemory::ok;
  std::vector<std::uint32_t> garbage_pids;  ///< listed as computing on every GPU, belong to no client
};

/// `config` with every made-up value filled in (minor, pci, uuid), as start() will use it: what else shows the same
/// GPUs, as /proc/driver/nvidia does, takes them from here. An error names the value that the driver cannot honour.
[[nodiscard]] vacate::Result<DriverConfig> complete(DriverConfig config);

/// The era's name in cases, and the folder of its library: lib/nvml/NAME/libnvidia-ml.so.1 in the build tree.
[[nodiscard]] std::string_view era_name(Era era);

/// The running driver. Owns the server process and the mount; both end with this object.
class DriverServer {
 public:
  /// Mounts the nodes on the existing directory `mount_dir`, in the caller's mount namespace, and starts the server;
  /// returns when the nodes answer. Pids are those of the caller's pid namespace, which has to see every process that
  /// will ever use the nodes, and /proc has to show it. The server dies with the thread that called this.
  [[nodiscard]] static vacate::Result<DriverServer> start(const DriverConfig& config, const std::string& mount_dir);

  DriverServer(DriverServer&& other) noexcept = default;
  DriverServer& operator=(DriverServer&& other) noexcept;
  DriverServer(const DriverServer&) = delete;
  DriverServer& operator=(const DriverServer&) = delete;
  ~DriverServer() { stop(); }

  /// Ends the server, which frees every process stuck in the driver, and unmounts what is mounted last on mount_dir().
  /// In the mount namespace of start(). Does nothing the second time.
  void stop() noexcept;

  [[nodiscard]] const std::string& mount_dir() const noexcept { return mount_dir_; }
  /// Readable when the server has ended. Owned by this object.
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }

 private:
  DriverServer(std::string mount_dir, vacate::UniqueFd pidfd)
      : mount_dir_(std::move(mount_dir)), pidfd_(std::move(pidfd)) {}

  std::string mount_dir_;
  vacate::UniqueFd pidfd_;
};

/// What one client has on one GPU.
struct ClientMemory {
  std::uint32_t gpu = 0;
  ListKind list = ListKind::none;
  vacate::Bytes bytes;
};

/// A client: something a process made on a control file, alive until the last reference to it is gone.
struct ClientState {
  std::uint64_t token = 0;
  pid_t opener = 0;            ///< who it is charged to, in the server's pid namespace; may be dead for long
  std::vector<pid_t> ns_pids;  ///< the same process, from the server's pid namespace inwards; the first is `opener`
  std::vector<ClientMemory> memory;
  std::uint32_t references = 0;  ///< open files that keep it: its control file and the files registered with that
};

struct GpuUsage {
  std::uint32_t index = 0;
  std::uint32_t minor = 0;
  GpuState state = GpuState::ok;
  vacate::Bytes total;
  vacate::Bytes reserved;
  vacate::Bytes used;                ///< without reserved
  vacate::Bytes falling;             ///< part of `used` that belonged to clients past their last reference
  std::int64_t last_release_ns = 0;  ///< CLOCK_MONOTONIC when a client last lost its last reference; 0: never
};

struct DriverState {
  std::vector<GpuUsage> gpus;  ///< by index
  std::vector<ClientState> clients;
};

/// The driver's own account, read from the mounted directory; works from any process and namespace that sees it.
[[nodiscard]] vacate::Result<DriverState> read_driver_state(const std::string& mount_dir);

/// Lets a GPU fall off the bus, or come back: clients it has stay as they are.
[[nodiscard]] vacate::Result<void> set_gpu_state(const std::string& mount_dir, std::uint32_t gpu_index, GpuState state);

}  // namespace lab
