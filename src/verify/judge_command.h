// SPDX-License-Identifier: Apache-2.0
// The verdict of the whole command: a pure function of what became of the steps and of the GPUs (cli.md, "Exit codes":
// if several apply, the order is refused, holders remain, held by nobody, cannot tell, done).
#pragma once

#include <vector>

#include "model/outcome.h"
#include "verify/judge_release.h"

namespace vacate {

/// What became of one selected GPU.
struct Release {
  GpuOutcome outcome;
  Proof proof = Proof::pending;
};

/// Who stands in for somebody that was ended, or outlived the last round.
enum class Remaining { nobody, somebody };

[[nodiscard]] Verdict judge_command(const std::vector<StepResult>& results, const std::vector<Release>& releases,
                                    Remaining remaining);

}  // namespace vacate
