// SPDX-License-Identifier: Apache-2.0
// What `vacate shm` prints: segments with their verdicts, what was removed and what it gave back, for people and as
// vacate.shm/1. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/action_record.h"
#include "model/shm.h"
#include "report/render_style.h"

namespace vacate {

struct ShmReport {
  ShmSnapshot snapshot;
  std::vector<ShmFinding> findings;  ///< one a segment
  ShmPlan plan;                      ///< of `clean`
  std::vector<ShmResult> results;    ///< by n
  ShmCommandVerdict verdict = ShmCommandVerdict::listed;
  int interrupted_by = 0;
  std::optional<RecordOutcome> record = {};  ///< where it was recorded; nothing where nothing was to be removed
};

/// The table of `list`, the fill of each tmpfs and what could be gained.
[[nodiscard]] std::string render_shm_text(const ShmReport& report, const RenderStyle& style);
/// What `clean` is going to remove, as it is shown before anybody is asked and by a dry run.
[[nodiscard]] std::string render_shm_plan_text(const ShmReport& report, const RenderStyle& style);
/// What came of it.
[[nodiscard]] std::string render_shm_outcome_text(const ShmReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_shm_json(const ShmReport& report);

/// Lines about segments that `free` removed or left, empty where it met none.
[[nodiscard]] std::string render_shm_cleanup_text(const ShmCleanup& cleanup, const RenderStyle& style);

/// What came of step `n`; nullptr: nothing was tried.
[[nodiscard]] const ShmResult* find_shm_result(const ShmReport& report, unsigned n);

/// "/dev/shm/psm_12345678", "sysv:7": hostile bytes.
[[nodiscard]] std::string shm_path(const ShmSnapshot& snapshot, const ShmSegment& segment);

}  // namespace vacate
