// SPDX-License-Identifier: Apache-2.0
// `why` as a composition: look, attribute, plan what could be done about each subject, and hand it all to the report.
// Pure but for the look that it is given.
#pragma once

#include <string>
#include <vector>

#include "app/look.h"
#include "report/why.h"

namespace vacate {

/// What is asked about, as it was written: processes, words for GPUs, and the holders that `narrowing` means by user,
/// unit, container, job or control group.
struct WhyQuestion {
  std::vector<ProcessSelector> processes;
  std::vector<std::string> gpu_words;
  Selection narrowing = {};
};

/// malformed: a word that names no GPU, the beginning of several containers' ids, or nobody who holds anything.
[[nodiscard]] Result<WhyReport> report_why(Look look, const WhyQuestion& question);

/// As of a status: 0 where it could look.
[[nodiscard]] ExitCode exit_code_of(const WhyReport& report) noexcept;

}  // namespace vacate
