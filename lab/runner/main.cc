// SPDX-License-Identifier: Apache-2.0
// vacate-lab: runs cases on simulated GPU machines. This file only hands the command line to its command.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "lab/runner/commands.h"

namespace {

struct Dispatch {
  int operator()(const lab::Answer& answer) const {
    fmt::print("{}", answer.out);
    fmt::print(stderr, "{}", answer.err);
    return answer.status;
  }
  int operator()(const lab::RunOptions& options) const { return lab::run_command(options); }
  int operator()(const lab::CheckOptions& options) const { return lab::check_command(options); }
  int operator()(const lab::ListOptions& options) const { return lab::list_command(options); }
  int operator()(const lab::ShellOptions& options) const { return lab::shell_command(options); }
  int operator()(const lab::DemoOptions& options) const { return lab::demo_command(options); }
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return std::visit(Dispatch{}, lab::parse_command_line(arguments));
}
