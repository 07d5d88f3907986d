// SPDX-License-Identifier: Apache-2.0
// What came of a plan. The exit code is a pure function of the outcome and of nothing else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "model/action_record.h"
#include "model/exit_code.h"
#include "model/holder.h"
#include "model/plan.h"
#include "model/shm.h"

namespace vacate {

enum class StepStatus { gone, already_gone, identity_changed, denied, timed_out, stuck, refused, skipped };
[[nodiscard]] std::string_view describe(StepStatus status) noexcept;

/// Exactly one for each step.
struct StepResult {
  unsigned n = 0;
  pid_t pid = 0;
  StepStatus status = StepStatus::skipped;
  std::vector<std::string> signals;  ///< "TERM", "KILL", in the order sent
  double seconds = 0;                ///< from the first signal to its end
  std::string detail;
};

enum class GpuVerdict { released, in_use, releasing, held_by_nobody, cannot_tell };
[[nodiscard]] std::string_view describe(GpuVerdict verdict) noexcept;

struct GpuOutcome {
  unsigned index = 0;
  std::string uuid;
  Reading<Bytes> before, after;
  Reading<Bytes> baseline;
  GpuVerdict verdict = GpuVerdict::cannot_tell;
  double seconds = 0;                             ///< from the start of the command to the verdict
  std::vector<pid_t> held_by;                     ///< holders left on it
  std::string detail;                             ///< what the verdict rests on, where that is less than usual
  std::vector<Explanation> explanations = {};     ///< of what nobody owns up to, as last seen
  std::vector<ResetBlocker> reset_blockers = {};  ///< as last seen
};

enum class Verdict { released, nothing_to_do, holders_remain, releasing, refused, cannot_tell, held_by_nobody };
[[nodiscard]] std::string_view describe(Verdict verdict) noexcept;

struct Outcome {
  Verdict verdict = Verdict::cannot_tell;
  Plan plan;                        ///< of the first round, as it was shown
  std::vector<StepResult> results;  ///< by n; further rounds append steps to `plan` and results here
  std::vector<GpuOutcome> gpus;     ///< the selected ones, by index
  unsigned rounds = 0;
  double seconds = 0;
  bool dry_run = false;
  int interrupted_by = 0;  ///< number of the signal that ended vacate itself early, else 0
  Visibility visibility;
  ShmCleanup shm = {};                       ///< segments that those ended used
  std::optional<RecordOutcome> record = {};  ///< of what was done; nothing where there was nothing to do
};

/// cli.md, "Exit codes".
[[nodiscard]] ExitCode exit_code_of(const Outcome& outcome) noexcept;

}  // namespace vacate
