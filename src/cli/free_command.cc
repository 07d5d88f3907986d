// SPDX-License-Identifier: Apache-2.0
// `free` for people: whose turn it is, what is planned, the question, and what came of it. A plan that was shown, or
// that a file has, is carried out on a fresh look, as far as that agrees.
#include <unistd.h>

#include <fmt/format.h>

#include "app/agreed_free.h"
#include "app/look.h"
#include "app/turn.h"
#include "cli/command_parts.h"
#include "cli/live_lines.h"
#include "cli/signal_watch.h"
#include "cli/terminal.h"
#include "execute/machine_log.h"

namespace vacate {
namespace {

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
  MachineLog log;
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

/// One run of `free` on this machine.
class FreeCommand {
 public:
  FreeCommand(const FreeOptions& options, const Policy& policy, FreeRequest request, DriverSession& driver)
      : options_(options), policy_(policy), request_(std::move(request)), driver_(driver) {}

  [[nodiscard]] int run();

 private:
  [[nodiscard]] Result<PreparedFree> prepare(const std::optional<Plan>& reviewed, Newcomers newcomers) const;
  [[nodiscard]] std::optional<int> wait_for_turn();
  [[nodiscard]] int rehearse_or_execute(PreparedFree prepared);
  [[nodiscard]] int ask_and_execute(PreparedFree shown);

  const FreeOptions& options_;
  const Policy& policy_;
  FreeRequest request_;
  DriverSession& driver_;
  Deadline::Clock::time_point started_ = Deadline::Clock::now();
  std::optional<Plan> reviewed_;
  Turn turn_;
};

Result<PreparedFree> FreeCommand::prepare(const std::optional<Plan>& reviewed, Newcomers newcomers) const {
  Look look = look_at_machine(driver_, policy_);
  auto prepared = reviewed
                      ? prepare_agreed(std::move(look), options_.words.gpus, request_, started_, *reviewed, newcomers)
                      : prepare_free(std::move(look), options_.words.gpus, request_, started_);
  if (prepared) prepared->policy_file = options_.policy_file;
  if (prepared && options_.usual_timeout) prepared->request.timeout += allowance_for(*prepared);
  return prepared;
}

/// The exit code, where the turn did not come.
std::optional<int> FreeCommand::wait_for_turn() {
  auto turn =
      take_turn("free", Deadline::at(started_ + request_.timeout), -1, [](const std::string& line) { complain(line); });
  if (turn) {
    turn_ = std::move(*turn);
    return std::nullopt;
  }
  const int code = complain_about(turn.error());
  return turn.error().code == ErrorCode::timed_out ? number_of(ExitCode::holders_remain) : code;
}

/// With nobody to be asked the turn comes before the look: a question left open must not keep others waiting.
int FreeCommand::run() {
  if (options_.plan_file) {
    auto plan = load_plan(*options_.plan_file);
    if (!plan) return complain_about(plan.error());
    reviewed_ = std::move(*plan);
  }
  if (options_.mode == Mode::yes)
    if (const auto code = wait_for_turn()) return *code;
  auto prepared = prepare(reviewed_, Newcomers::named);
  if (!prepared) return complain_about(prepared.error());
  for (const auto& line : prepared->unmatched) complain(line);
  return rehearse_or_execute(std::move(*prepared));
}

int FreeCommand::rehearse_or_execute(PreparedFree prepared) {
  if (options_.mode == Mode::dry_run) return rehearse_free(options_, prepared, policy_);
  const bool ends_somebody = prepared.plan.ends_anybody();
  if (options_.mode == Mode::ask && ends_somebody) return ask_and_execute(std::move(prepared));
  if (ends_somebody && !turn_.why_none.empty()) complain(turn_.why_none);
  if (options_.format == OutputFormat::text && !prepared.plan.empty())
    static_cast<void>(show_plan(prepared, options_.format).has_value());
  return execute_free(options_, std::move(prepared), driver_, policy_);
}

/// What was shown is what was agreed to. While the question was open the machine went on, and so did the time.
int FreeCommand::ask_and_execute(PreparedFree shown) {
  const bool can_ask = is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
  if (options_.format == OutputFormat::text || can_ask)
    if (const auto written = show_plan(shown, options_.format); !written) return complain_about(written.error());
  if (!can_ask)
    return decline_free(options_, shown, policy_,
                        "nothing was done: there is no terminal to ask on; add --yes to go ahead");
  if (!ask_yes_no("Proceed? [y/N] ")) return decline_free(options_, shown, policy_, "nothing was done");
  started_ = Deadline::Clock::now();  // the time limit is for the work, not for the answer
  if (const auto code = wait_for_turn()) return *code;
  if (!turn_.why_none.empty()) complain(turn_.why_none);
  auto agreed = prepare(shown.plan, Newcomers::left_to_rounds);
  if (!agreed) return complain_about(agreed.error());
  return execute_free(options_, std::move(*agreed), driver_, policy_);
}

}  // namespace

int free_gpus(const FreeOptions& options) {
  if (options.replay) return replay(options);
  const auto loaded = load_policy_and_scan(options.policy_file, options.scan);
  if (!loaded) return complain_about(loaded.error());
  FreeRequest request = options.request;
  auto users = resolve_users(options.words.users);
  if (!users) return complain_about(users.error());
  request.selection.users = std::move(*users);
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  return FreeCommand(options, *loaded, std::move(request), *driver).run();
}

}  // namespace vacate
