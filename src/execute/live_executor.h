// SPDX-License-Identifier: Apache-2.0
// The executor that signals, and the only caller of ProcessRef::send_signal. Every signal goes through a pidfd of the
// scan that the plan was made from, to a process whose key is the step's; a pid never reaches a signal (facts.md 3.4).
// Nobody is signalled who has let go of the GPU since the scan, nor a relative for whose sake nobody holds one any
// more.
#pragma once

#include <string>
#include <utility>

#include "execute/action_log.h"
#include "execute/executor.h"
#include "os/process_ref.h"
#include "os/system_bus.h"

namespace vacate {

class LiveExecutor final : public Executor {
 public:
  /// `pins` of the scan that the plans are from; `still_holds` is asked right before each signal; everything that is
  /// done goes into `log` before; `wake`, readable once the run is to stop, or -1. All outlive the executor.
  /// `bus_socket`: where the system's bus listens, for units.
  LiveExecutor(const PinSet& pins, StillHolds still_holds, ExecutionRules rules, ExecutionObserver& observer,
               ActionLog& log, int wake, std::string bus_socket = kSystemBusSocket)
      : pins_(pins),
        still_holds_(std::move(still_holds)),
        rules_(rules),
        observer_(observer),
        log_(log),
        wake_(wake),
        bus_socket_(std::move(bus_socket)) {}

  [[nodiscard]] std::vector<StepResult> execute(const Plan& plan, const Snapshot& seen, Deadline deadline) override;

 private:
  const PinSet& pins_;
  StillHolds still_holds_;
  ExecutionRules rules_;
  ExecutionObserver& observer_;
  ActionLog& log_;
  int wake_;
  std::string bus_socket_;
};

}  // namespace vacate
