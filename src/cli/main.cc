// SPDX-License-Identifier: Apache-2.0
// The program: standard descriptors, the command, its exit code. Nothing else happens here.
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/parse_options.h"
#include "cli/terminal.h"
#include "model/exit_code.h"

namespace {

int run(const std::vector<std::string>& arguments, const vacate::InheritedState& inherited) {
  const auto parsed = vacate::parse_options(arguments);
  if (const auto* error = std::get_if<vacate::UsageError>(&parsed)) return vacate::report_usage(*error);
  return vacate::run_command(std::get<vacate::Options>(parsed), inherited);
}

/// Throwing needs memory too, and whoever would catch it could do no more than this.
[[noreturn]] void out_of_memory() {
  vacate::complain("out of memory: it could not go on, and what it did before is not verified");
  _exit(static_cast<int>(vacate::ExitCode::defect));
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(out_of_memory);
  const auto inherited = vacate::InheritedState::read();
  vacate::open_standard_descriptors();
  vacate::raise_descriptor_limit();
  // A reader that has gone, or a file that may not grow, is a failed write: the exit code says so.
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run({argv + (argc > 0 ? 1 : 0), argv + argc}, inherited);
  } catch (const std::exception& error) {
    vacate::complain(std::string("a defect of vacate: ") + vacate::printable(error.what(), 200));
  } catch (...) {
    vacate::complain("a defect of vacate");
  }
  return static_cast<int>(vacate::ExitCode::defect);
}
