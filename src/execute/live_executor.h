// SPDX-License-Identifier: Apache-2.0
// The executor that signals, and the only caller of ProcessRef::send_signal. Every signal goes through a pidfd of the
// scan that the plan was made from, to a process whose key is the step's; a pid never reaches a signal (facts.md 3.4).
#pragma once

#include "execute/action_log.h"
#include "execute/executor.h"
#include "os/process_ref.h"

namespace vacate {

class LiveExecutor final : public Executor {
 public:
  /// `pins` of the scan that the plans are from; every signal goes into `log` before it is sent; `wake`, readable once
  /// the run is to stop, or -1. All outlive the executor.
  LiveExecutor(const PinSet& pins, ExecutionRules rules, ExecutionObserver& observer, ActionLog& log, int wake) noexcept
      : pins_(pins), rules_(rules), observer_(observer), log_(log), wake_(wake) {}

  [[nodiscard]] std::vector<StepResult> execute(const Plan& plan, const Snapshot& seen, Deadline deadline) override;

 private:
  const PinSet& pins_;
  ExecutionRules rules_;
  ExecutionObserver& observer_;
  ActionLog& log_;
  int wake_;
};

}  // namespace vacate
