// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_shm.h"

#include <algorithm>

namespace vacate {
namespace {

bool is_asked_for(const ShmSegment& segment, const ShmFinding& finding, const ShmRequest& request) {
  if (segment.kind == ShmKind::sysv) return request.sysv;
  const auto& families = request.families;
  return families.empty() || std::find(families.begin(), families.end(), finding.family) != families.end();
}

std::string refusal_of(const ShmSnapshot& snapshot) {
  std::string text = "not everything is visible, so that disuse cannot be proven";
  for (const auto& spot : snapshot.visibility.blind_spots)
    if (spot.code == "foreign-pid-namespace")
      text += "; --assume-private, if nobody outside this container uses its shared memory";
  return text;
}

}  // namespace

ShmPlan plan_shm(const ShmSnapshot& snapshot, const std::vector<ShmFinding>& findings, const ShmRequest& request,
                 ShmSight sight) {
  ShmPlan plan;
  if (sight == ShmSight::not_everybody) {
    plan.refusal = refusal_of(snapshot);
    return plan;
  }
  for (std::size_t i = 0; i < findings.size() && i < snapshot.segments.size(); ++i) {
    const auto& segment = snapshot.segments[i];
    if (findings[i].verdict != ShmVerdict::unused || !is_asked_for(segment, findings[i], request)) continue;
    plan.steps.push_back({static_cast<unsigned>(plan.steps.size() + 1), i, segment.name, segment.on_disk,
                          findings[i].because, findings[i].set});
  }
  return plan;
}

ShmCommandVerdict judge_clean(const ShmPlan& plan, const std::vector<ShmResult>& results) {
  if (!plan.refusal.empty()) return ShmCommandVerdict::cannot_tell;
  if (plan.steps.empty()) return ShmCommandVerdict::nothing_to_do;
  const auto any = [&](ShmStatus status) {
    return std::any_of(results.begin(), results.end(), [&](const ShmResult& r) { return r.status == status; });
  };
  if (any(ShmStatus::denied)) return ShmCommandVerdict::refused;
  if (any(ShmStatus::skipped)) return ShmCommandVerdict::remain;
  if (any(ShmStatus::cannot_tell)) return ShmCommandVerdict::cannot_tell;
  // What somebody came to use or changed meanwhile is no longer unused: that it stays is as wanted.
  return any(ShmStatus::removed) ? ShmCommandVerdict::removed : ShmCommandVerdict::nothing_to_do;
}

}  // namespace vacate
