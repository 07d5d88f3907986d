// SPDX-License-Identifier: Apache-2.0
#include "model/run.h"

#include <cerrno>

namespace vacate {
namespace {

constexpr int kFailed = 125;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

/// waitpid(2): the signal is in the lowest seven bits, the code in the byte above.
int signal_in(int status) noexcept { return status & 0x7F; }
int code_in(int status) noexcept { return (status >> 8) & 0xFF; }

}  // namespace

std::string_view describe(RunVerdict verdict) noexcept {
  switch (verdict) {
    case RunVerdict::nothing_left:
      return "nothing-left";
    case RunVerdict::survivors:
      return "survivors";
    case RunVerdict::not_released:
      return "not-released";
    case RunVerdict::cannot_tell:
      return "cannot-tell";
    case RunVerdict::not_started:
      return "not-started";
    case RunVerdict::failed:
      return "failed";
  }
  return "failed";
}

RunVerdict verdict_of(const RunOutcome& outcome) noexcept {
  if (outcome.left.somebody_left) return RunVerdict::survivors;
  if (!outcome.failure.empty()) return RunVerdict::failed;
  if (outcome.exec_errno != 0) return RunVerdict::not_started;
  if (!outcome.status) return RunVerdict::failed;
  if (!outcome.unreleased.empty()) return outcome.release_unknown ? RunVerdict::cannot_tell : RunVerdict::not_released;
  return RunVerdict::nothing_left;
}

int exit_code_of(const RunOutcome& outcome) noexcept {
  const RunVerdict verdict = verdict_of(outcome);
  if (verdict == RunVerdict::not_started) return outcome.exec_errno == ENOENT ? kNotFound : kNotExecutable;
  if (verdict != RunVerdict::nothing_left) return kFailed;
  return signal_in(*outcome.status) != 0 ? 128 + signal_in(*outcome.status) : code_in(*outcome.status);
}

int ending_signal_of(const RunOutcome& outcome) noexcept {
  return verdict_of(outcome) == RunVerdict::nothing_left ? signal_in(*outcome.status) : 0;
}

}  // namespace vacate
