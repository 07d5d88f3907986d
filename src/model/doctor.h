// SPDX-License-Identifier: Apache-2.0
// What the kernel and this process's rights let vacate see and do, as plain values: for `vacate doctor` alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/reading.h"

namespace vacate {

enum class CgroupLayout { none, v1, v2, hybrid };

/// Read by os/machine_facts.h without changing anything. A Reading<bool> is false where it was tried and does not work,
/// unknown where trying was not possible.
struct MachineFacts {
  std::uint32_t uid = 0;                ///< effective
  Reading<std::uint64_t> capabilities;  ///< effective, as bits of capability(7)
  bool hides_processes = false;         ///< /proc with hidepid=2
  bool denies_access = false;           ///< /proc with hidepid=1
  bool proc_shows_host = false;         ///< pid 2 is the kernel's: the host's pid namespace
  bool looks_contained = false;         ///< marks that container runtimes leave
  Reading<bool> pidfd_open;             ///< 5.3
  Reading<bool> pidfd_signal;           ///< 5.1
  Reading<bool> pidfs;                  ///< 6.9: inode of a pidfd is unique
  Reading<bool> kcmp;                   ///< CONFIG_KCMP
  Reading<bool> counts_descriptors;     ///< 6.2: size of /proc/PID/fd
  Reading<bool> cgroup_kill;            ///< 5.14
  Reading<bool> map_files;              ///< /proc/PID/map_files can be followed
  Reading<bool> kernel_stack;           ///< /proc/PID/stack can be read
  Reading<std::uint32_t> ptrace_scope;  ///< Yama's; unknown: no Yama
  std::string lockdown;                 ///< "none", "integrity", "confidentiality"; empty: not compiled in
  CgroupLayout cgroups = CgroupLayout::none;
};

}  // namespace vacate
