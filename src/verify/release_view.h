// SPDX-License-Identifier: Apache-2.0
// From what was seen before, what was ended and what is seen now to the view of one GPU that is judged. Pure.
#pragma once

#include <vector>

#include "model/outcome.h"
#include "verify/judge_release.h"
#include "verify/sighting.h"

namespace vacate {

/// What those who ended had on one GPU.
struct EndedShare {
  bool referenced = false;  ///< any reference at all, device files included
  bool pinned = false;      ///< a context or memory
  std::vector<pid_t> pids;  ///< who of them pinned it; sorted
  Reading<Bytes> charged = Bytes{0};
  std::vector<pid_t>
      charged_pids;  ///< whom the driver charged for it: themselves, or dead openers of what they inherited; sorted
  bool operator==(const EndedShare&) const = default;
};

/// Has this result's process ended, whoever ended it? True where its pid is somebody else's by now.
[[nodiscard]] bool has_ended(StepStatus status) noexcept;

/// What of `before` belonged to processes that have ended, on GPU `gpu`.
[[nodiscard]] EndedShare ended_share(const Sighting& before, const Plan& plan, const std::vector<StepResult>& results,
                                     unsigned gpu);

/// Holders of `gpu` in `attribution` that pin memory, device files alone left out; sorted.
[[nodiscard]] std::vector<pid_t> pinning_holders(const Attribution& attribution, unsigned gpu);

/// What is new since the last scan: the driver's figures are asked more often than the processes are looked at.
struct DriverFigures {
  std::vector<Gpu> gpus;
  std::vector<DriverCharge> charges;
};

/// The view of `gpu`, except for the times, which the caller keeps.
[[nodiscard]] ReleaseView view_of(unsigned gpu, const Sighting& before, const EndedShare& ended, const Sighting& now,
                                  const DriverFigures& figures);

}  // namespace vacate
