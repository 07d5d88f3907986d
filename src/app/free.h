// SPDX-License-Identifier: Apache-2.0
// `free` as a composition: look, plan, (the caller asks), execute, look again, verify, once more round where somebody
// new belongs to what was to be ended. Who asks, prints and listens to signals is cli/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/look.h"
#include "execute/action_log.h"
#include "execute/executor.h"
#include "model/outcome.h"
#include "report/free.h"
#include "verify/watch_release.h"

namespace vacate {

/// A plan with the pins that its signals go through.
struct PreparedFree {
  Deadline::Clock::time_point started;
  FreeRequest request;
  PinSet pins;
  Sighting before;
  Plan plan;
  std::vector<unsigned> gpus;                   ///< whose release is verified, by index
  std::vector<std::string> unmatched = {};      ///< selectors that no holder fits or needs, a line each
  std::optional<std::string> policy_file = {};  ///< of --policy: advice repeats it
  /// Results of steps that are refusals because only one of two plans has them, and n of those that say nothing about
  /// the verdict (plan/agreement.h).
  std::vector<StepResult> decided = {};
  std::vector<unsigned> aside = {};
};

/// Plans. malformed: a selector that names nothing there is.
[[nodiscard]] Result<PreparedFree> prepare_free(Look look, const std::vector<std::string>& gpu_words,
                                                FreeRequest request, Deadline::Clock::time_point started);

/// By how much a time limit that nobody asked for grows, for the memory that has to be unpinned
/// (verify/release_budget.h).
[[nodiscard]] std::chrono::milliseconds allowance_for(const PreparedFree& prepared);

/// Takes `plan` in place of what was planned, with the GPUs that it has to be verified on.
void replace_plan(PreparedFree& prepared, Plan plan);

/// What carrying out needs of the world.
struct FreeTools {
  std::function<Look()> look;
  std::function<DriverSample(Deadline)> sample;
  std::function<void()> reopen_driver;
  ExecutionObserver& execution;
  ReleaseObserver& release;
  ActionLog& log;                       ///< every action goes into it before it is done
  int wake = -1;                        ///< readable: a signal to vacate itself has come
  std::function<int()> interrupted_by;  ///< its number
};

[[nodiscard]] FreeReport carry_out(PreparedFree prepared, const FreeTools& tools, const Policy& policy);

/// The same plan through the recording executor: nothing is sent.
[[nodiscard]] FreeReport rehearse(const PreparedFree& prepared, const Policy& policy);

/// Nobody agreed: refused, nothing was executed, no results.
[[nodiscard]] FreeReport decline(const PreparedFree& prepared, const Policy& policy);

}  // namespace vacate
