// SPDX-License-Identifier: Apache-2.0
// Which GPUs a command used and whether their memory is back: what was in use before it started, what its processes had
// open meanwhile, and what the driver says at the end. The driver is asked before and after, never in between: a
// question that is kept open would keep the GPUs initialised.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/look.h"
#include "app/shm_of_ended.h"
#include "attribute/attribute.h"
#include "model/run.h"
#include "verify/sighting.h"

namespace vacate {

/// What of a command's end is to be verified.
struct GpuCheck {
  std::vector<std::string> gpu_words;  ///< of --gpu, to be verified in any case; none: those that were used
  std::chrono::milliseconds timeout{60000};
  bool keep_shm = false;
};

class UsedGpus {
 public:
  /// Looks before the command is started. malformed: a word that names no GPU.
  [[nodiscard]] static Result<UsedGpus> look_before(const GpuCheck& check, const Policy& policy);

  /// Without a device node and a driver nothing can be pinned: there is nothing to look at and nothing to verify.
  [[nodiscard]] bool can_be_used() const noexcept { return !before_.snapshot.nodes.empty(); }

  /// Those of --gpu; none named: all.
  [[nodiscard]] std::vector<Gpu> chosen() const;

  /// A cheap look at the open files of everybody below `keeper`.
  void note_open_files(pid_t keeper);
  /// A whole look at what the command has left, before it is ended.
  void look_at_those_left(pid_t keeper);

  /// After the end of all: waits until the memory of what was used is back, and says in `outcome` where it is not.
  /// `wake`: readable once somebody who waits has had enough.
  void verify(RunOutcome& outcome, int wake);

 private:
  UsedGpus(const GpuCheck& check, const Policy& policy) noexcept : check_(check), policy_(policy) {}
  [[nodiscard]] Result<Sighting> look();
  [[nodiscard]] std::vector<StepResult> results_of(const EndOfFamily& left) const;
  [[nodiscard]] std::vector<unsigned> grown(const Sighting& now) const;
  void judge(const GpuOutcome& gpu, const Sighting& last, RunOutcome& outcome) const;

  const GpuCheck& check_;
  const Policy& policy_;
  Sighting before_;      ///< the start
  Sighting with_left_;   ///< the last look at which what was ended was there; the start, if nothing was left
  Baselines baselines_;  ///< measured at the start, of GPUs that nobody held then
  std::set<unsigned> used_;
  Plan left_;
  ShmOfEnded shm_;
};

}  // namespace vacate
