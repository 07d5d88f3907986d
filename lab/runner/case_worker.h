// SPDX-License-Identifier: Apache-2.0
// One case from start to verdict, in a process of its own that takes its machine with it when it ends. What happened is
// told in text, as people read it; this decides nothing about which cases run when.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/case/case.h"
#include "lab/machine/machine.h"
#include "lab/runner/steps.h"

namespace lab {

enum class Verdict { passed, failed, skipped };

struct CaseResult {
  std::string path;
  std::string name;
  std::string title;
  Verdict verdict = Verdict::failed;
  std::string details;  ///< failed: lines that say what differs; skipped: the reason on one line
  double seconds = 0;
};

struct CaseSettings {
  MachinePaths paths;
  StepsOptions steps;
};

/// The exit status of an automake-style test that was skipped.
inline constexpr int kSkipStatus = 77;

/// Steps of the case in a machine whose actors have started; prints what differs to standard output. 0: as expected, 1:
/// not.
[[nodiscard]] int run_steps(Machine& machine, const Case& scenario, const StepsOptions& options);

/// A case at work in a process of its own. Ends that process when it is destroyed.
class CaseWorker {
 public:
  [[nodiscard]] static vacate::Result<CaseWorker> start(const Case& scenario, const CaseSettings& settings);

  /// Readable when the case has ended. Owned by this object.
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }
  /// When the case has had more time than all its steps may take.
  [[nodiscard]] vacate::Deadline deadline() const noexcept { return deadline_; }
  /// The verdict; waits for the end, and brings it about if the deadline has passed.
  [[nodiscard]] CaseResult finish();

  CaseWorker(CaseWorker&&) noexcept = default;
  CaseWorker& operator=(CaseWorker&&) = delete;
  CaseWorker(const CaseWorker&) = delete;
  CaseWorker& operator=(const CaseWorker&) = delete;
  ~CaseWorker();

 private:
  CaseWorker() = default;
  void kill() noexcept;

  vacate::UniqueFd pidfd_;
  vacate::UniqueFd output_;
  vacate::Deadline deadline_ = vacate::Deadline::never();
  vacate::Deadline::Clock::time_point begin_;
  CaseResult result_;
};

}  // namespace lab
