// SPDX-License-Identifier: Apache-2.0
// Processes as seen by one scan: plain values. Every string here is hostile bytes as the process chose them; only
// report/ makes them printable. Nothing here can signal anything.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "base/result.h"

namespace vacate {

constexpr pid_t kLargestPid = 1 << 22;  // PID_MAX_LIMIT of the kernel

/// What identifies a process: a pid alone is recycled, pid and start time together are not (facts.md 3.4).
struct ProcessKey {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;    ///< field 22 of /proc/PID/stat, clock ticks since boot
  std::uint64_t pidfd_inode = 0;    ///< unique for the uptime where the kernel has pidfs (6.9), else 0
  std::uint64_t pid_namespace = 0;  ///< inode of the namespace the pid is a number of (the scan's own)

  auto operator<=>(const ProcessKey&) const = default;
};

/// "4711@156405": printed everywhere, accepted back on the command line.
[[nodiscard]] std::string to_string(const ProcessKey& key);

/// "4711" or "4711@156405" from a command line.
struct ProcessSelector {
  pid_t pid = 0;
  std::optional<std::uint64_t> start_ticks;
  [[nodiscard]] bool matches(const ProcessKey& key) const noexcept {
    return pid == key.pid && (!start_ticks || *start_ticks == key.start_ticks);
  }
  bool operator==(const ProcessSelector&) const = default;
};
[[nodiscard]] Result<ProcessSelector> parse_process_selector(std::string_view text);

enum class Condition { running, stopped, traced, frozen, exiting, stuck, zombie, zombie_leader, dumping_core };
/// "running", "zombie-leader", ...: the word in JSON.
[[nodiscard]] std::string_view describe(Condition condition) noexcept;

/// One end of a pipe or socket pair that a process holds, and who has the other end (facts.md 3.7).
struct PipeEnd {
  int fd = -1;
  std::uint64_t inode = 0;  ///< of the pipe, or of this socket
  bool is_socket = false;
  bool close_on_exec = false;
  /// Inode ctime minus the process's start, in seconds; unknown after a stepped clock or without the figures.
  Reading<double> created_after_start;
  /// Every visible process that has the other end, this one included if it has; sorted. Not known while any process's
  /// descriptors could not be read.
  Reading<std::vector<pid_t>> other_end;
  bool reads =
      true;  ///< this end can be read from; of a pipe that a process made for its own helper it may have the other one
  bool operator==(const PipeEnd&) const = default;
};

/// The kernel has two freezers. A process that version 1 froze does not even take KILL before it is thawed; one that
/// version 2 froze does (facts.md 3.5, 3.6).
enum class Freezer { v1, v2 };
[[nodiscard]] std::string_view describe(Freezer freezer) noexcept;

/// Whose code the kernel is in on behalf of a process that is stuck, by its topmost frame (/proc/PID/stack, root only).
enum class StuckIn { unknown, gpu_driver, fuse, nfs, other_module, kernel };
[[nodiscard]] std::string_view describe(StuckIn where) noexcept;

/// A process. The first block is read for every process; the rest for candidates only: holders and whatever shares a
/// process group, session, parent or child with one (`detailed`).
struct Process {
  ProcessKey key;
  pid_t ppid = 0;
  pid_t pgid = 0;
  pid_t sid = 0;
  std::string comm;
  char state = '?';      ///< letter of /proc/PID/stat
  unsigned threads = 0;  ///< counts live threads beside a zombie leader too
  bool kernel_thread = false;
  bool exiting = false;   ///< PF_EXITING
  std::uint32_t tty = 0;  ///< device number of the controlling terminal, 0: none

  bool detailed = false;
  Condition condition = Condition::running;
  Reading<uid_t> uid;        ///< effective
  std::string user;          ///< name of uid, or its number
  Reading<std::string> exe;  ///< /proc/PID/exe without " (deleted)"
  Reading<std::vector<std::string>> argv;
  std::string cgroup;  ///< see os/: v2 path, or the most telling v1 one
  std::uint64_t pid_namespace = 0;
  std::vector<pid_t> ns_pids;  ///< NSpid: outermost visible first
  double started = 0;          ///< seconds since the epoch
  std::optional<pid_t>
      named_parent;  ///< --parent=PID in its argv, or of torch's compile workers: read in its own namespace
  bool named_parent_alive = true;
  bool listens = false;        ///< has a listening stream socket (inet, inet6)
  std::vector<PipeEnd> pipes;  ///< sorted by fd
  std::string wchan;           ///< where it sleeps in the kernel, if stuck
  std::string kernel_frame;    ///< topmost frame of its kernel stack, if stuck and readable: "request_wait_answer"
  std::string kernel_module;   ///< module of that frame, empty for the kernel's own
  StuckIn stuck_in = StuckIn::unknown;
  /// Who logged in, whatever became of the process since (/proc/PID/loginuid); nothing for daemons and where the kernel
  /// keeps none.
  std::optional<uid_t> login_uid;
  std::string login_user;  ///< name of login_uid, or its number; empty without one
  /// Host memory that cannot be swapped, locked or pinned for devices (VmLck and VmPin of /proc/PID/status): taking
  /// that down takes time.
  Reading<Bytes> pinned_memory;

  bool operator==(const Process&) const = default;
};

/// A zombie whose threads are all gone holds nothing and is nobody's owner. With live threads it is alive.
[[nodiscard]] inline bool is_gone(const Process& process) noexcept {
  return (process.state == 'Z' || process.state == 'X') && process.threads <= 1 &&
         process.condition != Condition::zombie_leader;
}

/// argv[0..] joined by blanks, else "[comm]": what ps shows. Hostile bytes.
[[nodiscard]] std::string title_of(const Process& process);

}  // namespace vacate
