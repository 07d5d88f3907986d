// SPDX-License-Identifier: Apache-2.0
// Asks those who supervise candidates what has become of their units, containers and jobs: the service manager, the
// container runtimes' state, Slurm. Control groups only say whom to ask. Unknown is never gone: what nobody could or
// would say stays unknown, and so does what was said about another machine than the one that is looked at.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/snapshot.h"
#include "os/container_state.h"
#include "os/procfs.h"
#include "os/service_manager.h"

namespace vacate {

/// Whom to ask about what, from the control groups of candidates. Each sorted, each once, capped in number.
struct SupervisionQuestions {
  std::vector<UnitQuestion> units;            ///< services that the system's own manager has
  std::vector<ContainerQuestion> containers;  ///< outermost ones; `runtime` only where its state can be found by id
  std::vector<std::string> jobs;              ///< Slurm's
  bool operator==(const SupervisionQuestions&) const = default;
};
[[nodiscard]] SupervisionQuestions questions_about(const std::vector<Process>& processes);

/// What processes themselves say about the container `id`: true if the first process of a pid namespace of its own is
/// alive (the kernel ends such a namespace with its first process); otherwise not asked.
[[nodiscard]] Existence first_process_of(const std::string& id, const std::vector<Process>& processes);

/// A process whose arguments have `id` as a word, as those of a container's shim or monitor do: it is looked after, so
/// that no absence elsewhere proves it gone. For saying no only, since anybody can write anything into arguments.
[[nodiscard]] bool is_looked_after(const std::string& id, const std::vector<Process>& processes);

class Supervision {
 public:
  /// Starts asking the service manager about the services of `processes`, whose details are known; the caller goes on
  /// with something else. `root` has to outlive this.
  Supervision(const ProcDirectory& root, const Host& host, const std::vector<Process>& processes);

  /// Fills services, containers and jobs of `snapshot` about `processes`. Takes at most about 1 s for services, 0.5 s
  /// for containers and 2 s for jobs, and less than a millisecond where there is nothing to ask.
  void finish(const std::vector<Process>& processes, Snapshot& snapshot);

 private:
  [[nodiscard]] std::vector<Existence> containers(const std::vector<Process>& processes) const;
  [[nodiscard]] std::vector<Existence> jobs(const std::vector<Process>& processes) const;
  [[nodiscard]] std::optional<std::string> job_of_step_daemon(const Process& process) const;

  const ProcDirectory& root_;
  SupervisionQuestions questions_;
  /// The folders and programs seen here are those of the host, and so are the processes: only then can an absence mean
  /// anything. In a container with the host's process table its own folders know nothing of the host's containers.
  bool is_host_ = false;
  ServiceManagerQuery services_;
};

}  // namespace vacate
