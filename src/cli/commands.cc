// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/look.h"
#include "cli/command_parts.h"
#include "cli/signal_watch.h"
#include "cli/terminal.h"
#include "execute/wait.h"

namespace vacate {
namespace {

int show_status_once(const StatusOptions& options, const Selection& selection, DriverSession& driver,
                     const Policy& policy) {
  const auto report =
      report_status(look_at_machine(driver, policy), options.words.gpus, {selection, options.policy_file});
  if (!report) return complain_about(report.error());
  const std::string text = options.format == OutputFormat::json ? render_status_json(*report)
                                                                : render_status_text(*report, style_for(STDOUT_FILENO));
  const std::string_view home = options.watch && is_capable_terminal(STDOUT_FILENO) ? "\x1b[H\x1b[2J" : "";
  return delivered(std::string(home) + text, number_of(exit_code_of(*report)));
}

/// Draws anew until a signal comes or the output is gone.
int watch_status(const StatusOptions& options, const Selection& selection, DriverSession& driver,
                 const Policy& policy) {
  static constexpr std::chrono::seconds kPace{2};
  auto signals = SignalWatch::start();
  if (!signals) return complain_about(signals.error());
  for (;;) {
    const int code = show_status_once(options, selection, driver, policy);
    if (code != number_of(ExitCode::done)) return code;
    if (wait_for(signals->descriptor(), Deadline::after(kPace))) return 128 + signals->caught();
  }
}

int run(const StatusOptions& options) {
  if (options.replay) return replay(options);
  const auto loaded = load_policy_and_scan(options.policy_file, options.scan);
  if (!loaded) return complain_about(loaded.error());
  const Policy& policy = *loaded;
  auto users = resolve_users(options.words.users);
  if (!users) return complain_about(users.error());
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  const auto& words = options.words;
  const Selection selection{{},         true,         options.pids, std::move(*users), words.units, words.containers,
                            words.jobs, words.cgroups};
  return options.watch ? watch_status(options, selection, *driver, policy)
                       : show_status_once(options, selection, *driver, policy);
}

int run(const FreeOptions& options) { return free_gpus(options); }

int run(const WaitOptions& options) { return run_wait(options); }

int run(const WhyOptions& options) { return explain(options); }

int run(const DoctorOptions& options) { return diagnose(options); }

int run(const RecordOptions& options) { return record(options); }

int run(const LogOptions& options) { return show_log(options); }
int run(const ShmOptions& options) { return run_shm(options); }

int run(const RunOptions&) { return number_of(ExitCode::defect); }  // needs more than its options

int run(const UnitLintOptions& options) { return run_unit_lint(options); }

int run(const UnitDropinOptions& options) { return run_unit_dropin(options); }

int run(const ShowText& shown) { return delivered(shown.text, number_of(ExitCode::done)); }

}  // namespace

int run_command(const Options& options, const InheritedState& inherited) {
  if (const auto* chosen = std::get_if<RunOptions>(&options)) return run_under_a_keeper(*chosen, inherited);
  return std::visit([](const auto& chosen) { return run(chosen); }, options);
}

int report_usage(const UsageError& error) {
  complain(error.message);
  static_cast<void>(write_all(STDERR_FILENO, fmt::format("try '{}'\n", error.try_command)).has_value());
  return number_of(ExitCode::usage);
}

}  // namespace vacate
