// SPDX-License-Identifier: Apache-2.0
// One exclusive advisory lock a GPU, so that those who ask for it take turns: "vacate wait --lock" keeps them while it
// waits, "vacate run --lock" as long as its command runs. They bind nobody else: whoever does not ask for the lock
// uses the GPU all the same. Root's locks and those of every other user are files of their own (os/lock_file.h): users
// do not exclude each other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "model/device.h"
#include "os/lock_file.h"

namespace vacate {

/// "gpu-UUID.lock"; by PCI address where nobody said the UUID. The index would not do: it differs between containers.
[[nodiscard]] std::string lock_name_of(const Gpu& gpu);

class GpuLocks {
 public:
  /// The GPU whose lock somebody else has, and who, as they wrote it themselves.
  struct Busy {
    unsigned index = 0;
    std::optional<LockOwner> owner;
  };

  /// Opens the lock of each of `gpus` and takes none. Errors: as LockFile::open().
  [[nodiscard]] static Result<GpuLocks> open(const std::vector<Gpu>& gpus);

  /// Takes what is not taken yet, one after the other in an order that is the same for everybody, so that two who want
  /// the same GPUs never wait for each other. Those taken are kept when it does not get all. `command`: shown to
  /// others.
  [[nodiscard]] Result<LockWait> take(std::string_view command, Deadline deadline, int wake);
  /// The first that is not taken. Nothing: all are.
  [[nodiscard]] std::optional<Busy> missing() const;
  /// They carry the locks: closed on exec; a child that is given copies keeps the locks until it ends too.
  [[nodiscard]] std::vector<int> descriptors() const;

 private:
  struct Lock {
    unsigned index = 0;
    LockFile file;
  };
  std::vector<Lock> locks_;  ///< by name
};

}  // namespace vacate
