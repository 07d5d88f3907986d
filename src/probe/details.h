// SPDX-License-Identifier: Apache-2.0
// The second block of a Process: what is read of candidates only. Reads what cannot block; words of the command line
// come from an expendable child. What was read counts only if the caller proves the process alive afterwards.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/process.h"
#include "os/expendable_pass.h"
#include "os/freezer.h"
#include "os/procfs.h"
#include "os/users.h"

namespace vacate {

/// Tells which cgroups are frozen, asking each once.
class FrozenCgroups {
 public:
  [[nodiscard]] static FrozenCgroups read();
  [[nodiscard]] bool is_frozen_by_v2(const std::string& path) { return is_frozen(path, Freezer::v2); }
  /// Or being frozen: as long as one of its processes does not get there, it is not called frozen.
  [[nodiscard]] bool is_frozen_by_v1(const std::string& path) { return is_frozen(path, Freezer::v1); }

 private:
  [[nodiscard]] bool is_frozen(const std::string& path, Freezer freezer);

  FreezerMounts mounts_;
  std::map<std::pair<Freezer, std::string>, bool> known_;
};
/// "frozen 1" in cgroup.events.
[[nodiscard]] bool parse_frozen(std::string_view cgroup_events) noexcept;

class DetailReader {
 public:
  DetailReader(const ProcDirectory& root, Users users);

  /// Fills everything but argv, pipes, listens and the parent it names. gone: ended, or another process than `process`
  /// by now. Any other error: something could not be read, and the process is left as one that is not detailed, of
  /// which nothing can be proven.
  [[nodiscard]] Result<void> read(Process& process);
  /// CLOCK_REALTIME of the machine's boot, in seconds: start ticks count from there (facts.md 3.7).
  [[nodiscard]] double boot_time() const noexcept { return boot_time_; }

 private:
  [[nodiscard]] Result<void> read_everything(Process& process);
  [[nodiscard]] Result<void> read_memory_facts(const ProcDirectory& owner, Process& process) const;
  [[nodiscard]] bool is_frozen(const Process& now, const FreezerPaths& groups, char thread_state);
  [[nodiscard]] Condition condition_of(const Process& before, const Process& now, const ProcStatus& status,
                                       const FreezerPaths& groups, char thread_state);

  const ProcDirectory& root_;
  Users users_;
  FrozenCgroups frozen_;
  double boot_time_ = 0;
  double ticks_a_second_ = 100;
};

/// Does it wait uninterruptibly, so that its kernel stack tells what for?
[[nodiscard]] bool waits_in_kernel(const Process& process) noexcept;

/// A last look at such a process, or at the thread that is left of it.
struct KernelLook {
  char state = '?';                 ///< letter of stat
  std::vector<KernelFrame> frames;  ///< topmost first; empty where they may not be read (root only)
};

/// Kernel stacks, read in an expendable child: reading one takes a lock that a target stuck in exec never gives back.
class KernelStackScan {
 public:
  explicit KernelStackScan(std::vector<pid_t> pids);
  /// By pid; none where reading blocked.
  [[nodiscard]] std::map<pid_t, KernelLook> finish();

 private:
  std::vector<pid_t> pids_;
  ExpendablePass pass_;
};

/// Fills frame, module and whose they are. One that waits no more was not stuck.
void apply_look(const KernelLook& look, Process& process);

/// argv of many processes, read in an expendable child beside whatever the caller does.
class CommandLineScan {
 public:
  explicit CommandLineScan(std::vector<pid_t> pids);
  /// By pid; timed out where reading blocked, failed where the process is gone or has none any more.
  [[nodiscard]] std::map<pid_t, Reading<std::vector<std::string>>> finish();

 private:
  std::vector<pid_t> pids_;
  ExpendablePass pass_;
};

/// The number in `--parent=PID`, as torch's compile workers are told theirs.
[[nodiscard]] std::optional<pid_t> parse_named_parent(const std::vector<std::string>& argv) noexcept;

/// Resolves the parent that argv names to a process of this scan; it is dead, too, if its number belongs to a younger
/// process.
void resolve_named_parents(const ProcDirectory& root, std::vector<Process>& processes);

}  // namespace vacate
