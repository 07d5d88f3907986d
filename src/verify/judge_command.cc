// SPDX-License-Identifier: Apache-2.0
#include "verify/judge_command.h"

#include <algorithm>

namespace vacate {
namespace {

bool any_result(const std::vector<StepResult>& results, std::initializer_list<StepStatus> wanted) {
  return std::any_of(results.begin(), results.end(), [&](const StepResult& result) {
    return std::find(wanted.begin(), wanted.end(), result.status) != wanted.end();
  });
}

bool any_gpu(const std::vector<Release>& releases, GpuVerdict verdict) {
  return std::any_of(releases.begin(), releases.end(),
                     [&](const Release& release) { return release.outcome.verdict == verdict; });
}

bool any_proof(const std::vector<Release>& releases, Proof proof) {
  return std::any_of(releases.begin(), releases.end(), [&](const Release& release) { return release.proof == proof; });
}

/// Memory of what was ended is not back, on a GPU that others use too.
bool any_owed(const std::vector<Release>& releases) {
  return std::any_of(releases.begin(), releases.end(), [](const Release& release) {
    return release.outcome.verdict == GpuVerdict::in_use && release.proof == Proof::pending;
  });
}

}  // namespace

Verdict judge_command(const std::vector<StepResult>& results, const std::vector<Release>& releases,
                      Remaining remaining) {
  if (any_result(results, {StepStatus::refused, StepStatus::denied})) return Verdict::refused;
  if (remaining == Remaining::somebody || any_proof(releases, Proof::kept) ||
      any_result(results, {StepStatus::timed_out, StepStatus::stuck, StepStatus::skipped}))
    return Verdict::holders_remain;
  if (any_gpu(releases, GpuVerdict::releasing) || any_owed(releases)) return Verdict::releasing;
  if (any_gpu(releases, GpuVerdict::held_by_nobody)) return Verdict::held_by_nobody;
  if (any_gpu(releases, GpuVerdict::cannot_tell) || any_proof(releases, Proof::unreadable)) return Verdict::cannot_tell;
  return results.empty() ? Verdict::nothing_to_do : Verdict::released;
}

}  // namespace vacate
