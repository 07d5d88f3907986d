// SPDX-License-Identifier: Apache-2.0
// `vacate wait`: prints who is in the way, tells the service manager, ends at once on a signal.
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "app/free.h"
#include "app/turn.h"
#include "app/wait.h"
#include "base/text.h"
#include "cli/command_parts.h"
#include "cli/live_lines.h"
#include "cli/signal_watch.h"
#include "cli/terminal.h"
#include "execute/machine_log.h"
#include "os/service_notifier.h"
#include "report/format.h"
#include "verify/judge_gate.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

extern "C" void exit_by_signal(int signal) { _exit(128 + signal); }

/// A wait has nothing to finish: it ends where it is, also as pid 1 of a container, where the default action of these
/// signals is none.
void exit_on_signals() noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;  // nohup
    action = {};
    action.sa_handler = exit_by_signal;
    (void)sigaction(signal, &action, nullptr);
  }
}

/// Prints and tells the service manager.
class Teller final : public WaitObserver {
 public:
  explicit Teller(const WaitOptions& options)
      : prints_(!options.quiet),
        lines_(prints_ && is_capable_terminal(STDERR_FILENO) ? Show::lines : Show::nothing, style_for(STDERR_FILENO)) {}

  void on_change(const WaitReport& now) override {
    manager_.say_status(render_wait_status(now));
    if (!prints_) return;
    lines_.wipe();
    static_cast<void>(write_all(STDERR_FILENO, render_in_the_way(now, style_for(STDERR_FILENO))).has_value());
  }
  void on_sample(const WaitReport& now) override {
    if (extended_.passed()) extend(kExtension);
    lines_.draw(render_wait_lines(now));
  }
  void on_absence(milliseconds at_most) override { extend(at_most + kExtension); }
  void wipe() { lines_.wipe(); }
  void on_end(const WaitReport& last) const { manager_.say_status(render_wait_last_status(last)); }

 private:
  /// A start may take this long from now, and that is said again long before: a driver that does not answer keeps a
  /// sample for 5 s, and samples are up to 20 s apart.
  static constexpr milliseconds kExtension{60'000};
  static constexpr milliseconds kRepeat{15'000};

  void extend(milliseconds time) {
    manager_.extend_timeout(time);
    extended_ = Deadline::after(kRepeat);
  }

  bool prints_;
  LiveLines lines_;
  ServiceNotifier manager_ = ServiceNotifier::from_environment();
  Deadline extended_ = Deadline::at({});
};

/// Without those who were to be ignored: that they were left alone is what was asked.
Reaped reaped_of(FreeReport report, int interrupted_by) {
  auto& outcome = report.outcome;
  for (const auto& step : outcome.plan.steps)
    if (step.rule == kIgnoredRule) std::erase_if(outcome.results, [&](const auto& each) { return each.n == step.n; });
  return {std::move(outcome.results), interrupted_by};
}

/// Ends leftovers as `free --yes` does: in turn with every other vacate that ends processes, and the turn comes before
/// the look.
Result<Reaped> reap(const std::vector<unsigned>& gpus, milliseconds limit, const WaitRequest& wait,
                    DriverSession& driver, const Policy& policy) {
  const auto started = Deadline::Clock::now();
  const auto turn =
      take_turn("wait --reap", Deadline::at(started + limit), -1, [](const std::string& line) { complain(line); });
  if (!turn) return turn.error();
  const auto look = [&] {
    Look seen = look_at_machine(driver, policy);
    spare_ignored(seen.attribution, seen.scan.snapshot, wait);
    return seen;
  };
  FreeRequest request;
  request.selection = wait.selection;
  request.timeout = limit;
  std::vector<std::string> words;
  for (const auto index : gpus) words.push_back(std::to_string(index));
  auto prepared = prepare_free(look(), words, std::move(request), started);
  if (!prepared) return prepared.error();
  if (!prepared->plan.ends_anybody()) return reaped_of(rehearse(*prepared, policy), 0);
  if (!turn->why_none.empty()) complain(turn->why_none);
  auto signals = SignalWatch::start();
  if (!signals) return signals.error();
  LiveLines silent(Show::nothing, {});
  MachineLog log;
  const FreeTools tools{look,
                        [&](Deadline deadline) { return driver.sample(deadline); },
                        [&] {
                          driver.close(Deadline::after(policy.driver_deadline));
                          if (auto fresh = DriverSession::start()) driver = std::move(*fresh);
                        },
                        silent,
                        silent,
                        log,
                        signals->descriptor(),
                        [&] { return signals->caught(); }};
  FreeReport report = carry_out(std::move(*prepared), tools, policy);
  if (const auto line = unrecorded_line(report.outcome.record, 4096); !line.empty()) complain(trim(line));
  const int caught = signals->caught();
  signals->stop();
  return reaped_of(std::move(report), caught);
}

int deliver_wait(const WaitOptions& options, const WaitReport& report) {
  if (report.interrupted_by != 0) return 128 + report.interrupted_by;
  const std::string text = options.format == OutputFormat::json ? render_wait_json(report)
                                                                : render_wait_outcome(report, style_for(STDOUT_FILENO));
  return delivered(text, number_of(exit_code_of(report.verdict)));
}

}  // namespace

int run_wait(const WaitOptions& options) {
  const auto loaded = load_policy_and_scan(options.policy_file, options.scan);
  if (!loaded) return complain_about(loaded.error());
  Policy policy = *loaded;
  WaitRequest request = options.request;
  auto users = resolve_users(options.words.users);
  if (!users) return complain_about(users.error());
  request.selection.users = std::move(*users);
  if (request.timeout.count() != 0)  // a silent driver must not make the wait longer than it was to be
    policy.driver_deadline = std::min(policy.driver_deadline, std::max(request.timeout, milliseconds(200)));
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  exit_on_signals();
  Teller teller(options);
  WaitTools tools{[&] { return look_at_machine(*driver, policy); },
                  [&](Deadline deadline) { return driver->sample(deadline); },
                  [&] { driver->close(Deadline::after(policy.driver_deadline)); },  // the next sample starts another
                  [&] { driver->revive(); },
                  {},
                  {},
                  teller};
  if (options.reap)
    tools.reap = [&](const std::vector<unsigned>& gpus, milliseconds limit) {
      return reap(gpus, limit, request, *driver, policy);
    };
  std::optional<GpuLocks> locks;
  if (options.lock)
    tools.lock = [&](const std::vector<Gpu>& gpus, Deadline deadline) -> Result<std::optional<GpuLocks::Busy>> {
      if (!locks) {
        auto opened = GpuLocks::open(gpus);
        if (!opened) return opened.error();
        locks = *std::move(opened);
      }
      if (const auto taken = locks->take("vacate wait --lock", deadline, -1); !taken) return taken.error();
      return locks->missing();
    };
  const auto report = wait_for_gpus(request, options.words.gpus, tools, policy);
  teller.wipe();
  if (!report) return complain_about(report.error());
  teller.on_end(*report);
  for (const auto& line : report->unmatched) complain(line);
  return deliver_wait(options, *report);
}

}  // namespace vacate
