// SPDX-License-Identifier: Apache-2.0
// Runs a program of the system for what it prints: no shell, no environment, a deadline, in an expendable child. Only
// for programs that read (design.md rules 7 and 8).
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"

namespace vacate {

struct ProgramOutput {
  int exit_code = -1;  ///< -1: ended by a signal
  std::string text;    ///< both streams as they came, hostile; cut at 1 MiB
};

/// The first of the absolute `paths` that exists and that only root can have put there, with `arguments` after its
/// name. gone: none is there; refused: the first that is there is not root's alone; timed_out: it was killed.
[[nodiscard]] Result<ProgramOutput> run_trusted_program(const std::vector<std::string>& paths,
                                                        const std::vector<std::string>& arguments, Deadline deadline);

}  // namespace vacate
