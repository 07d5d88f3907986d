// SPDX-License-Identifier: Apache-2.0
// The program: standard descriptors, the command, its exit code. Nothing else happens here.
#include <csignal>
#include <exception>
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

}  // namespace

int main(int argc, char** argv) {
  const auto inherited = vacate::InheritedState::read();
  vacate::open_standard_descriptors();
  vacate::raise_descriptor_limit();
  (void)std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is a failed write: the exit code says so
  try {
    return run({argv + (argc > 0 ? 1 : 0), argv + argc}, inherited);
  } catch (const std::exception& error) {
    vacate::complain(std::string("a defect of vacate: ") + vacate::printable(error.what(), 200));
  } catch (...) {
    vacate::complain("a defect of vacate");
  }
  return static_cast<int>(vacate::ExitCode::defect);
}
