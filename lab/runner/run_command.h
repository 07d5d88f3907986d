// SPDX-License-Identifier: Apache-2.0
// `vacate-lab run`: many cases, several at once, reported in their order.
#pragma once

#include <string>
#include <vector>

#include "lab/runner/case_worker.h"

namespace lab {

struct RunOptions {
  std::vector<std::string> files;  ///< cases, or folders of them
  int jobs = 1;
  std::string junit;  ///< file to write; empty: none
  bool keep_going = false;
  CaseSettings settings;
};

/// The exit status: 0 all passed (some may be skipped), 1 something failed, 77 all were skipped, 2 nothing to run.
[[nodiscard]] int run_command(const RunOptions& options);

/// The files of `paths` with folders replaced by their *.toml, sorted.
[[nodiscard]] std::vector<std::string> case_files(const std::vector<std::string>& paths);

/// "ok   NAME (1.2 s)  TITLE" and what follows it; ends with a line end.
[[nodiscard]] std::string result_text(const CaseResult& result);
/// "N passed, N failed", and skipped if there are any.
[[nodiscard]] std::string summary_text(const std::vector<CaseResult>& results);

}  // namespace lab
