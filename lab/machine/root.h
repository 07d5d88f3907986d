// SPDX-License-Identifier: Apache-2.0
// The machine's file system: an overlay of the host's root whose changes go to memory, with its own /dev, /run, /tmp,
// /var, /etc/vacate, users and programs. Nothing of it is on the host's disk, and the host's own /dev and /run are not
// in it.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/driver/driver.h"
#include "lab/machine/machine.h"

namespace lab {

/// Builds it in the calling process's private mount namespace and returns the path of its root there.
/// The stand-in of the vendor's library in it is the one of the driver's era.
[[nodiscard]] vacate::Result<std::string> build_root(const MachinePaths& paths, const DriverConfig& config);

/// Shows the nodes that the driver serves on `root`/run/lab/driver in `root`/dev.
[[nodiscard]] vacate::Result<void> show_device_nodes(const std::string& root, const DriverConfig& config);

/// /proc/driver/nvidia below `proc`, a mounted procfs: what the vendor's module says there (facts.md 2.5).
[[nodiscard]] vacate::Result<void> show_proc_driver(const std::string& proc, const DriverConfig& config);

inline constexpr const char* kDriverDir = "/run/lab/driver";  ///< in the machine
inline constexpr const char* kHidePid = "hidepid=2";          ///< mount option of procfs
inline constexpr const char* kIoDir = "/run/lab/io";          ///< what commands read and write, in the machine

}  // namespace lab
