// SPDX-License-Identifier: Apache-2.0
// `run`: everything else in vacate answers a question, this one stands between a caller and a command and is not to be
// noticed by either.
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/run.h"
#include "cli/command_parts.h"
#include "cli/terminal.h"
#include "os/signal_relay.h"
#include "report/run.h"

namespace vacate {
namespace {

/// The command alone decides when its input and output are at their end.
void let_go_of(std::initializer_list<int> descriptors) noexcept {
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return;
  for (const int fd : descriptors) (void)dup2(nothing.get(), fd);
}

/// Other codes could be those of the command.
constexpr int kFailed = 125;

int fail_before_the_start(const Error& error) {
  if (error.code == ErrorCode::malformed) return complain_about(error);
  complain(fmt::format("{}; the command was not started", error.message));
  return kFailed;
}

}  // namespace

int run_under_a_keeper(const RunOptions& options, const InheritedState& inherited) {
  const bool prints = options.format == OutputFormat::json;
  const RunTools tools{inherited,
                       [&] {
                         if (prints)
                           let_go_of({STDIN_FILENO});
                         else
                           let_go_of({STDIN_FILENO, STDOUT_FILENO});
                       },
                       [](const std::string& line) { complain(line); }};
  const auto policy = load_policy_and_scan(options.policy_file, options.scan);
  if (!policy) return fail_before_the_start(policy.error());
  const auto ran = run_to_the_end(options.request, tools, *policy);
  if (!ran) return fail_before_the_start(ran.error());
  const RunOutcome& outcome = *ran;
  const RunDetail detail = options.quiet || prints ? RunDetail::what_went_wrong : RunDetail::what_was_ended;
  for (const auto& line : render_run_lines(outcome, detail)) complain(line);
  int code = exit_code_of(outcome);
  if (prints && delivered(render_run_json(outcome), code) != code) code = kFailed;
  if (const int signal = ending_signal_of(outcome); signal != 0) die_by(signal);
  return code;
}

}  // namespace vacate
