// SPDX-License-Identifier: Apache-2.0
#include "app/shm_of_ended.h"

#include <algorithm>

#include "app/shm.h"
#include "attribute/shm_catalogue.h"
#include "attribute/shm_trackers.h"
#include "execute/shm_remover.h"
#include "plan/plan_shm.h"
#include "probe/shm_places.h"
#include "probe/shm_scan.h"

namespace vacate {
namespace {

/// A listing alone is cheap; the pass over all processes is not.
bool has_candidates() {
  const auto listed = list_shm({});
  if (!listed) return false;
  return std::any_of(listed->segments.begin(), listed->segments.end(), [](const ShmSegment& segment) {
    const auto name = recognise_shm(segment.name);
    return segment.kind == ShmKind::file && name && name->treatment == ShmTreatment::removable;
  });
}

bool is_gone(StepStatus status) { return status == StepStatus::gone || status == StepStatus::already_gone; }

ShmFileKey key_of(const ShmSegment& segment) { return {segment.identity.device, segment.identity.inode}; }

/// Leaves the steps of `files`, and of what belongs together with one of them: a set is not torn.
void keep_to(ShmPlan& plan, const ShmSnapshot& snapshot, const std::set<ShmFileKey>& files) {
  const auto is_meant = [&](const ShmStep& step) { return files.contains(key_of(snapshot.segments[step.segment])); };
  std::set<std::string> sets;
  for (const auto& step : plan.steps)
    if (is_meant(step) && !step.set.empty()) sets.insert(step.set);
  std::erase_if(plan.steps, [&](const ShmStep& step) { return !is_meant(step) && !sets.contains(step.set); });
}

std::set<pid_t> ended_by(const Plan& plan, const std::vector<StepResult>& results) {
  std::set<pid_t> ended;
  for (const auto& result : results)
    for (const auto& step : plan.steps)
      if (step.n == result.n && is_ending(step.action) && is_gone(result.status)) ended.insert(step.key.pid);
  return ended;
}

/// A tracker that none of the users had a pipe to was told of other segments than theirs.
void acquit_trackers_of_others(ShmSnapshot& snapshot, const std::set<pid_t>& strangers) {
  for (auto& keeper : snapshot.keepers)
    if (strangers.contains(keeper.pid)) keeper.resource_tracker = false;
}

}  // namespace

ShmOfEnded ShmOfEnded::look(const FreeRequest& request, const Plan& plan, const Snapshot& before, ScanMethod scan) {
  ShmOfEnded shm;
  shm.before_ = &before;
  shm.scan_ = scan;
  if (request.keep_shm || !plan.ends_anybody() || !has_candidates()) return shm;
  const auto snapshot = scan_shm({}, scan);
  if (!snapshot) return shm;
  for (const auto& segment : snapshot->segments) {
    if (segment.kind != ShmKind::file) continue;
    for (const auto& user : segment.users) shm.uses_.push_back({key_of(segment), user.pid});
  }
  return shm;
}

std::set<ShmFileKey> ShmOfEnded::used_by(const std::set<pid_t>& ended) const {
  std::set<ShmFileKey> files;
  for (const auto& use : uses_)
    if (ended.contains(use.pid)) files.insert(use.file);
  return files;
}

std::set<pid_t> ShmOfEnded::users_among(const std::set<pid_t>& ended) const {
  std::set<pid_t> users;
  for (const auto& use : uses_)
    if (ended.contains(use.pid)) users.insert(use.pid);
  return users;
}

ShmCleanup ShmOfEnded::clean(const Plan& plan, const std::vector<StepResult>& results, ActionLog& log, int wake) const {
  ShmCleanup cleanup;
  const auto ended = ended_by(plan, results);
  const auto files = used_by(ended);
  if (files.empty()) return cleanup;
  auto snapshot = scan_shm({}, scan_);
  if (!snapshot) return cleanup;
  read_keepers(*snapshot);
  acquit_trackers_of_others(*snapshot, strangers_to(*before_, users_among(ended)));
  const ShmRequest request;
  const auto findings = judge_shm(*snapshot, request, files);
  ShmPlan unlinks = plan_shm(*snapshot, findings, request, ShmSight::everybody);  // a finding tells of a partial view
  keep_to(unlinks, *snapshot, files);
  unlinks.id = plan.id;
  const auto removals = remove_shm(unlinks, *snapshot, log, wake);
  for (std::size_t i = 0; i < snapshot->segments.size(); ++i) {
    const auto& segment = snapshot->segments[i];
    const auto step = std::find_if(unlinks.steps.begin(), unlinks.steps.end(),
                                   [&](const ShmStep& each) { return each.segment == i; });
    const bool has_step = step != unlinks.steps.end();
    if (segment.kind != ShmKind::file || (!has_step && !files.contains(key_of(segment)))) continue;
    ShmCleanup::Entry entry{shm_path(*snapshot, segment), segment.on_disk, findings[i].because};
    bool removed = false;
    if (has_step) {
      const auto& result = removals[static_cast<std::size_t>(step - unlinks.steps.begin())];
      removed = result.status == ShmStatus::removed || result.status == ShmStatus::already_gone;
      if (!removed) entry.because = std::string(describe(result.status)) + ": " + result.detail;
    }
    (removed ? cleanup.removed : cleanup.kept).push_back(std::move(entry));
  }
  return cleanup;
}

}  // namespace vacate
