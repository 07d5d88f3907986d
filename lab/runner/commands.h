// SPDX-License-Identifier: Apache-2.0
// The commands of vacate-lab besides `run`. Each prints for people and returns the exit status.
#pragma once

#include "lab/runner/options.h"

namespace lab {

/// 0: all cases are sound; 2: some are not, each error on a line of standard error.
[[nodiscard]] int check_command(const CheckOptions& options);
/// One line a case: name, title, and what the lab cannot do yet.
[[nodiscard]] int list_command(const ListOptions& options);
/// The status of the shell.
[[nodiscard]] int shell_command(const ShellOptions& options);
/// 0: the story went as the case tells it, 1: not, 77: the kernel lacks something.
[[nodiscard]] int demo_command(const DemoOptions& options);

/// Prints "vacate-lab: WHY" to standard error, line by line, and gives the status for it: 77 for unsupported, 2 for
/// malformed, otherwise 1.
[[nodiscard]] int say_failure(const vacate::Error& error);
/// The case in `path` if the lab can run it, or the error.
[[nodiscard]] vacate::Result<Case> runnable_case(const std::string& path);

}  // namespace lab
