// SPDX-License-Identifier: Apache-2.0
// The command line of vacate-lab. Only options.cc knows CLI11.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lab/runner/run_command.h"

namespace lab {

struct CheckOptions {
  std::vector<std::string> files;
};
struct ListOptions {
  std::string folder;
};
struct ShellOptions {
  std::string file;
  MachinePaths paths;
};
struct DemoOptions {
  std::string file;
  MachinePaths paths;
};
/// Nothing to run: help was asked for, or the command line was wrong.
struct Answer {
  std::string out;  ///< for standard output
  std::string err;  ///< for standard error
  int status = 0;
};

using Command = std::variant<Answer, RunOptions, CheckOptions, ListOptions, ShellOptions, DemoOptions>;

/// What the arguments of main() ask for. Paths that were not given are those of the build this program belongs to.
[[nodiscard]] Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace lab
