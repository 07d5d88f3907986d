// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/free.h"
#include "app/load_policy.h"
#include "app/look.h"
#include "cli/command_parts.h"
#include "cli/live_lines.h"
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
  const auto loaded = load_policy(options.policy_file);
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

std::string render(const FreeReport& report, OutputFormat format) {
  return format == OutputFormat::json ? render_free_json(report.outcome)
                                      : render_outcome_text(report, style_for(STDOUT_FILENO));
}

/// Shows the plan where it will be read: beside the question where standard output belongs to a script.
Result<void> show_plan(const PreparedFree& prepared, OutputFormat format) {
  const int descriptor = format == OutputFormat::json ? STDERR_FILENO : STDOUT_FILENO;
  return write_all(descriptor, render_plan_text(prepared.plan, prepared.request, style_for(descriptor)));
}

int decline_free(const FreeOptions& options, const PreparedFree& prepared, const Policy& policy, std::string_view why) {
  const FreeReport report = decline(prepared, policy);
  int code = number_of(exit_code_of(report.outcome));
  if (options.format == OutputFormat::json) code = delivered(render_free_json(report.outcome), code);
  complain(why);
  return code;
}

int execute_free(const FreeOptions& options, PreparedFree prepared, DriverSession& driver, const Policy& policy) {
  auto signals = SignalWatch::start();
  if (!signals) return complain_about(signals.error());
  const bool shows = !options.quiet && options.format == OutputFormat::text && is_capable_terminal(STDERR_FILENO) &&
                     !prepared.plan.empty();
  LiveLines lines(shows ? Show::lines : Show::nothing, style_for(STDERR_FILENO));
  NoActionLog log;
  const FreeTools tools{[&] { return look_at_machine(driver, policy); },
                        [&](Deadline deadline) { return driver.sample(deadline); },
                        [&] {
                          driver.close(Deadline::after(policy.driver_deadline));
                          if (auto fresh = DriverSession::start()) driver = std::move(*fresh);
                        },
                        lines,
                        lines,
                        log,
                        signals->descriptor(),
                        [&] { return signals->caught(); }};
  const FreeReport report = carry_out(std::move(prepared), tools, policy);
  lines.wipe();
  return delivered(render(report, options.format), number_of(exit_code_of(report.outcome)));
}

int run(const FreeOptions& options) {
  if (options.replay) return replay(options);
  const auto started = Deadline::Clock::now();
  const auto loaded = load_policy(options.policy_file);
  if (!loaded) return complain_about(loaded.error());
  const Policy& policy = *loaded;
  FreeRequest request = options.request;
  auto users = resolve_users(options.words.users);
  if (!users) return complain_about(users.error());
  request.selection.users = std::move(*users);
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  auto prepared = prepare_free(look_at_machine(*driver, policy), options.words.gpus, std::move(request), started);
  if (!prepared) return complain_about(prepared.error());
  prepared->policy_file = options.policy_file;
  for (const auto& line : prepared->unmatched) complain(line);
  if (options.mode == Mode::dry_run) return rehearse_free(options, *prepared, policy);
  const bool needs_consent = options.mode == Mode::ask && prepared->plan.has_action(Action::signal);
  const bool can_ask = is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
  if (options.format == OutputFormat::text || (needs_consent && can_ask))
    if (!prepared->plan.empty())
      if (const auto shown = show_plan(*prepared, options.format); !shown && needs_consent)
        return complain_about(shown.error());
  if (needs_consent && !can_ask)
    return decline_free(options, *prepared, policy,
                        "nothing was done: there is no terminal to ask on; add --yes to go ahead");
  if (needs_consent && !ask_yes_no("Proceed? [y/N] "))
    return decline_free(options, *prepared, policy, "nothing was done");
  if (needs_consent) prepared->started = Deadline::Clock::now();  // the time limit is for the work, not for the answer
  return execute_free(options, std::move(*prepared), *driver, policy);
}

int run(const WaitOptions& options) { return run_wait(options); }

int run(const WhyOptions& options) { return explain(options); }

int run(const DoctorOptions& options) { return diagnose(options); }

int run(const RecordOptions& options) { return record(options); }

int run(const ShmOptions& options) { return run_shm(options); }

int run(const ShowText& shown) { return delivered(shown.text, number_of(ExitCode::done)); }

}  // namespace

int run_command(const Options& options) {
  return std::visit([](const auto& chosen) { return run(chosen); }, options);
}

int report_usage(const UsageError& error) {
  complain(error.message);
  static_cast<void>(write_all(STDERR_FILENO, fmt::format("try '{}'\n", error.try_command)).has_value());
  return number_of(ExitCode::usage);
}

}  // namespace vacate
