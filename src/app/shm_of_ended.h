// SPDX-License-Identifier: Apache-2.0
// Shared memory that only processes used that one run of `free` ended: seen in use before the first signal, removed
// afterwards with the same proof as by `shm clean`. The age rule is waived for these: that they were in use a moment
// ago, and by whom, is known.
#pragma once

#include <set>
#include <vector>

#include "attribute/shm_findings.h"
#include "execute/action_log.h"
#include "model/outcome.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

class ShmOfEnded {
 public:
  /// Looks, before anything is sent, at who uses which segment. Looks at nothing where nobody is to be ended, where
  /// --keep-shm was given, or where there is no segment that could ever be removed. `before`, what the plan was made
  /// from, has to outlive it.
  [[nodiscard]] static ShmOfEnded look(const FreeRequest& request, const Plan& plan, const Snapshot& before,
                                       ScanMethod scan);

  /// Removes what those that ended used and nobody else does. Nothing is removed before all of `results` are known:
  /// Python's resource tracker, one of them, had its chance by then. `wake`: readable once the run is to stop.
  [[nodiscard]] ShmCleanup clean(const Plan& plan, const std::vector<StepResult>& results, ActionLog& log,
                                 int wake) const;

 private:
  struct Use {
    ShmFileKey file;
    pid_t pid = 0;
  };
  [[nodiscard]] std::set<ShmFileKey> used_by(const std::set<pid_t>& ended) const;
  [[nodiscard]] std::set<pid_t> users_among(const std::set<pid_t>& ended) const;

  std::vector<Use> uses_;
  const Snapshot* before_ = nullptr;
  ScanMethod scan_ = ScanMethod::automatic;
};

}  // namespace vacate
