// SPDX-License-Identifier: Apache-2.0
// Carries out a plan. Only an executor is handed objects that can signal; a dry run is another executor that records,
// not a flag in the mechanism. Neither decides anything: what is not a step of the plan does not happen.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "model/outcome.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace vacate {

enum class Escalation {
  kill_after_grace,
  term_only,     ///< TERM and nothing after it, however long it takes
  kill_at_once,  ///< the grace of the run is over: KILL, without another TERM to answer with another copy
};

/// How hard and how fast (design.md section 5, rule 5 and Numbers).
struct ExecutionRules {
  Escalation escalation = Escalation::kill_after_grace;
  std::chrono::milliseconds grace{10000};    ///< from the first TERM of the run to KILL
  std::chrono::milliseconds patience{2000};  ///< for who ends by itself when the others are gone
  std::chrono::milliseconds silence{5000};   ///< of a service manager that was asked to stop a unit
};

/// Does the process hold a GPU still? gone: it has ended; any other error: it cannot be told.
using StillHolds = std::function<Result<bool>(const ProcessKey& key)>;

/// Where a run stands, for a live line.
struct ExecutionProgress {
  std::size_t total = 0;
  std::size_t alive = 0;
  std::optional<std::chrono::milliseconds> until_kill;  ///< nothing where no KILL will be sent
};

class ExecutionObserver {
 public:
  virtual ~ExecutionObserver() = default;
  virtual void on_execution(const ExecutionProgress& progress) = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// Exactly one result a step, in the order of the steps. `seen` is the snapshot that the plan was made from. Returns
  /// when every process to be ended has, at the deadline, or when the caller is interrupted.
  [[nodiscard]] virtual std::vector<StepResult> execute(const Plan& plan, const Snapshot& seen, Deadline deadline) = 0;
};

}  // namespace vacate
