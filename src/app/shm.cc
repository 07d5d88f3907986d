// SPDX-License-Identifier: Apache-2.0
#include "app/shm.h"

#include <algorithm>

#include "attribute/shm_findings.h"
#include "execute/shm_remover.h"
#include "plan/plan_shm.h"
#include "probe/shm_scan.h"

namespace vacate {

Result<ShmReport> look_at_shm(const ShmRequest& request) {
  auto snapshot = scan_shm(request.paths, request.scan);
  if (!snapshot) return snapshot.error();
  ShmReport report;
  report.snapshot = *std::move(snapshot);
  report.findings = judge_shm(report.snapshot, request);
  const bool any = std::any_of(report.findings.begin(), report.findings.end(),
                               [](const ShmFinding& finding) { return finding.verdict == ShmVerdict::unused; });
  if (any) {
    read_keepers(report.snapshot);
    report.findings = judge_shm(report.snapshot, request);
  }
  const auto& spots = report.snapshot.visibility.blind_spots;
  const bool blind = std::any_of(spots.begin(), spots.end(), [](const BlindSpot& spot) {
    return spot.code == "no-proc" || spot.code == "proc-unlisted";
  });
  report.verdict = blind ? ShmCommandVerdict::cannot_tell : ShmCommandVerdict::listed;
  return report;
}

void plan_clean(ShmReport& report, const ShmRequest& request) {
  const bool sees_all = sees_all_users(report.snapshot, request);
  report.plan =
      plan_shm(report.snapshot, report.findings, request, sees_all ? ShmSight::everybody : ShmSight::not_everybody);
  report.results = record_shm(report.plan);
  report.verdict = judge_clean(report.plan, report.results);
  if (report.verdict == ShmCommandVerdict::remain) report.verdict = ShmCommandVerdict::would_remove;
}

void carry_out_clean(ShmReport& report, ActionLog& log, int wake) {
  report.results = remove_shm(report.plan, report.snapshot, log, wake);
  report.record = log.outcome();
  report.verdict = judge_clean(report.plan, report.results);
}

void decline_clean(ShmReport& report) { report.verdict = ShmCommandVerdict::refused; }

}  // namespace vacate
