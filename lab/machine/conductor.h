// SPDX-License-Identifier: Apache-2.0
// Pid 1 and pid 2 of the machine: entering its namespaces, adopting and reaping, and running the case's logic in pid 1.
#pragma once

#include <functional>
#include <string>

#include "lab/actor/board.h"
#include "lab/case/case.h"
#include "lab/driver/driver.h"
#include "lab/machine/machine.h"

namespace lab {

/// What pid 1 and 2 need to know; made by the supervisor.
struct MachineSetup {
  const Case& scenario;
  DriverConfig driver;
  std::string root;        ///< of the machine, as the supervisor sees it
  std::string cgroup;      ///< of the machine, on the host; empty: there is none
  std::string v1_freezer;  ///< likewise, in the freezer of version 1; empty: the case needs none
  Board board;
};

class Conductor {
 public:
  explicit Conductor(const MachineSetup& setup) : setup_(setup) {}

  /// In pid 1: becomes init, starts the shell and runs `body`; what `body` returned.
  [[nodiscard]] vacate::Result<int> conduct(const std::function<int(Machine&)>& body);
  /// In pid 2: looks like the host's kthreadd and does nothing.
  [[noreturn]] void idle();

 private:
  [[nodiscard]] vacate::Result<void> enter();
  [[nodiscard]] vacate::Result<void> join_cgroups() const;
  [[nodiscard]] vacate::Result<void> mount_cgroups() const;
  void become_init() const;

  const MachineSetup& setup_;
};

}  // namespace lab
