// SPDX-License-Identifier: Apache-2.0
// The executor of a dry run: it records what it was handed and sends nothing. It has nothing that it could signal with.
#pragma once

#include "execute/executor.h"

namespace vacate {

class RecordingExecutor final : public Executor {
 public:
  /// Every step to be executed is `skipped`, every refusal `refused`.
  [[nodiscard]] std::vector<StepResult> execute(const Plan& plan, const Snapshot& seen, Deadline deadline) override;
  /// The plans it was handed, in order.
  [[nodiscard]] const std::vector<Plan>& recorded() const noexcept { return recorded_; }

 private:
  std::vector<Plan> recorded_;
};

}  // namespace vacate
