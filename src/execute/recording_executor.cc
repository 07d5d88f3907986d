// SPDX-License-Identifier: Apache-2.0
#include "execute/recording_executor.h"

namespace vacate {

std::vector<StepResult> RecordingExecutor::execute(const Plan& plan, const Snapshot& /*seen*/, Deadline /*deadline*/) {
  recorded_.push_back(plan);
  std::vector<StepResult> results;
  for (const auto& step : plan.steps) {
    StepResult result;
    result.n = step.n;
    result.pid = step.key.pid;
    result.status = step.action == Action::refuse ? StepStatus::refused : StepStatus::skipped;
    result.detail = step.action != Action::refuse ? "dry run" : step.because.empty() ? step.rule : step.because.front();
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace vacate
