// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_shm.h"

#include <algorithm>

#include "plan/digest.h"

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

/// Over what is to be removed, and from which boot's tmpfs.
std::string id_of(const ShmPlan& plan, const ShmSnapshot& snapshot) {
  Fnv1a hash;
  hash.add(snapshot.host.boot_id);
  for (const auto& step : plan.steps) {
    const auto& identity = snapshot.segments[step.segment].identity;
    hash.add(step.n);
    hash.add(step.name);
    hash.add(identity.device);
    hash.add(identity.inode);
    hash.add(static_cast<std::uint64_t>(identity.modified));
    hash.add(step.because);
  }
  return hash.id();
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
  plan.id = id_of(plan, snapshot);
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
