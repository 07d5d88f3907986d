// SPDX-License-Identifier: Apache-2.0
// What came of a command that vacate ran, and of what it left behind. The exit code is a pure function of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/action_record.h"
#include "model/outcome.h"

namespace vacate {

/// What became of one process that the command left behind.
struct EndedProcess {
  ProcessKey key;
  std::string title;  ///< hostile bytes
  StepStatus status = StepStatus::skipped;
  std::vector<std::string> signals = {};
  double seconds = 0;
  std::string detail = {};
};

struct EndOfFamily {
  std::vector<EndedProcess> processes;       ///< by pid; of very many only some, but each that is still there
  unsigned unnamed = 0;                      ///< those beyond, all of them ended
  bool somebody_left = false;                ///< somebody is still there, out of sight perhaps
  std::optional<RecordOutcome> record = {};  ///< of the signals; nothing where none was sent
};

enum class RunVerdict {
  nothing_left,  ///< nobody is left, and the memory that was used is back
  survivors,     ///< somebody is still there
  not_released,  ///< nobody is left, but memory that was used is not back
  cannot_tell,   ///< whether it is back cannot be seen
  not_started,   ///< there is no such command, or it cannot be executed
  failed,        ///< vacate could not do its part
};
[[nodiscard]] std::string_view describe(RunVerdict verdict) noexcept;

struct RunOutcome {
  std::vector<std::string> argv;  ///< hostile bytes
  pid_t pid = 0;                  ///< 0: not started
  int exec_errno = 0;             ///< why not, as a number of execve(2) and for people
  std::string exec_problem;
  std::optional<int> status;     ///< as waitpid(2) gives it; nothing: it was not seen to end
  std::string control_group;     ///< path of the group of its own; empty: it had none
  std::string no_control_group;  ///< why not, for people
  EndOfFamily left;
  std::vector<GpuOutcome> gpus;              ///< that it used, by index
  std::vector<std::string> unreleased = {};  ///< a line a GPU whose memory is not back or cannot be told to be
  bool release_unknown = false;              ///< all of these lines are about what cannot be told
  ShmCleanup shm = {};
  std::optional<RecordOutcome> record = {};  ///< of all that was done; nothing where there was nothing to do
  std::string failure;                       ///< what vacate could not do, a line; empty: it did its part
  double seconds = 0;
  Visibility visibility = {};
};

[[nodiscard]] RunVerdict verdict_of(const RunOutcome& outcome) noexcept;

/// That of the command; 128+N if signal N ended it; 127 not found, 126 not executable; 125 survivors, memory that is
/// not back, or vacate failed.
[[nodiscard]] int exit_code_of(const RunOutcome& outcome) noexcept;
/// The signal that ended the command, where the exit code is that of the command; else 0.
[[nodiscard]] int ending_signal_of(const RunOutcome& outcome) noexcept;

}  // namespace vacate
