// SPDX-License-Identifier: Apache-2.0
// The commands: options in, exit code out. Everything that prints, asks and listens to signals is called from here.
#pragma once

#include "cli/options.h"
#include "os/inherited_state.h"

namespace vacate {

/// Returns the exit code of the program (cli.md, "Exit codes"). `inherited`: what vacate was started with.
[[nodiscard]] int run_command(const Options& options, const InheritedState& inherited);

/// Reports a usage error and returns its exit code.
[[nodiscard]] int report_usage(const UsageError& error);

}  // namespace vacate
