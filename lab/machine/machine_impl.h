// SPDX-License-Identifier: Apache-2.0
// What a Machine consists of in pid 1. Private to lab/machine.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "lab/actor/board.h"
#include "lab/actor/plan.h"
#include "lab/case/case.h"
#include "lab/machine/machine.h"
#include "lab/machine/mps_daemon.h"
#include "lab/machine/respawner.h"
#include "lab/machine/unit_bus.h"
#include "lab/machine/units.h"

namespace lab {

/// Where the machine has the freezer of cgroup version 1, if its case needs one.
inline constexpr const char* kV1Freezer = "/cgroup/freezer";

/// A command that was started and not yet finished.
struct RunningCommand {
  std::uint32_t slot = kNoSlot;
  vacate::UniqueFd pidfd;
  vacate::UniqueFd terminal;  ///< tty: the master side
  std::string files;          ///< otherwise: what it writes, less ".out" and ".err"
  std::string out;            ///< tty: read so far
  bool job = true;            ///< leads a process group of its own
  std::chrono::steady_clock::time_point started;
};

struct Machine::Impl {
  const Case& scenario;
  Board board;
  bool has_cgroups = false;
  std::vector<vacate::UniqueFd> birth_ends;  ///< of the children of init
  mutable std::map<std::uint32_t, vacate::UniqueFd> pidfds;
  std::map<int, RunningCommand> commands;
  int next_command = 1;
  std::map<std::uint32_t, std::vector<std::uint32_t>> exporters = {};  ///< of an actor: who has to be ready before it
  std::map<std::string, std::uint32_t> namespaces = {};  ///< the first process of each child pid namespace, by its name
  std::vector<int> shm_ids = {};                         ///< of each [[shm]] entry, -1 for a file
  std::mutex orders{};  ///< held while orders are added to the board or a process is forked: two threads do both
  std::unique_ptr<Units> units = nullptr;
  std::unique_ptr<UnitBus> unit_bus = nullptr;  ///< after `units`, which it speaks for
  std::unique_ptr<Respawner> respawner = nullptr;
  std::vector<std::unique_ptr<MpsDaemon>> mps_daemons = {};

  /// The newest actor or copy of that name. malformed: none.
  [[nodiscard]] vacate::Result<std::uint32_t> find(std::string_view name) const;
  /// A descriptor of the process of `slot`, or -1 if it ended before one could be had. Owned by this.
  [[nodiscard]] int pidfd(std::uint32_t slot) const;
  /// Whether the last thread of `slot`'s process has ended.
  [[nodiscard]] bool exited(std::uint32_t slot) const;
  /// Has `slot` forked by its parent; the phase tells the rest.
  void request(std::uint32_t slot);
  /// Until `slot` is at least in `phase`. The error is the process's own if it has left one.
  [[nodiscard]] vacate::Result<void> await(std::uint32_t slot, Phase phase, vacate::Deadline deadline) const;

  [[nodiscard]] vacate::Result<void> start_shell();
  [[nodiscard]] vacate::Result<std::uint32_t> add_actor_of_case(const ActorSpec& spec);
  [[nodiscard]] vacate::Result<void> start(const std::vector<std::uint32_t>& slots, vacate::Deadline deadline);
  /// Orders a number for `slot` and waits until nobody has it in the same pid namespace.
  [[nodiscard]] vacate::Result<void> reserve_number(std::uint32_t slot, std::uint32_t of, vacate::Deadline deadline);
  /// Until `slot` is dumping its core.
  [[nodiscard]] vacate::Result<void> await_dump(std::uint32_t slot, vacate::Deadline deadline) const;
  /// Has `slot` traced by a helper, and its cgroup frozen.
  [[nodiscard]] vacate::Result<void> trace(std::uint32_t slot) const;
  [[nodiscard]] vacate::Result<void> freeze(std::uint32_t slot, vacate::Deadline deadline) const;
  /// The freezer of version 1 gets a group of the same path with the same processes in it.
  [[nodiscard]] vacate::Result<void> freeze_by_v1(std::uint32_t slot, vacate::Deadline deadline) const;
  /// Finds the number in the machine of a process that only knows the one that it has in a child pid namespace.
  void find_number(std::uint32_t slot) const;
  /// The first process of the child pid namespace of that name. malformed: there is none that lives.
  [[nodiscard]] vacate::Result<std::uint32_t> first_in(const std::string& pidns) const;
  /// Whether what `slot` has to wait for before it is forked is there.
  [[nodiscard]] bool may_be_forked(std::uint32_t slot) const;
  /// The service manager, if the case has units.
  [[nodiscard]] vacate::Result<void> start_units();
  /// What starts children of actors again, and the control daemons of MPS. After the units.
  [[nodiscard]] vacate::Result<void> start_helpers();
  /// A new process with the name and the orders that the one of `slot` had. May be called from any thread.
  void start_again(std::uint32_t slot);
  [[nodiscard]] vacate::Result<std::vector<std::uint32_t>> plan_actors();
  [[nodiscard]] vacate::Result<std::uint32_t> add_actor(const std::string& name, const std::string& parent,
                                                        ActorPlan plan);
  [[nodiscard]] vacate::Result<void> bring_up(const std::vector<std::uint32_t>& slots, vacate::Deadline deadline);
  [[nodiscard]] vacate::Result<void> take_final_states(const std::vector<std::uint32_t>& slots,
                                                       vacate::Deadline deadline);
};

/// What /proc/PID/stat says, of zombies too. state 0: there is no such process.
struct ProcessStat {
  char state = 0;
  int exit_status = 0;  ///< wait status, of a zombie
};
[[nodiscard]] ProcessStat read_stat(pid_t pid);

/// Whether a core dumped in the machine stays there: core_pattern is one for the whole kernel, and not ours to change.
[[nodiscard]] bool can_dump();

}  // namespace lab
