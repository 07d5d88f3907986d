// SPDX-License-Identifier: Apache-2.0
// `vacate shm`: asks, prints and listens to signals.
#include <unistd.h>

#include <fmt/format.h>

#include "app/shm.h"
#include "cli/command_parts.h"
#include "cli/signal_watch.h"
#include "cli/terminal.h"
#include "execute/machine_log.h"

namespace vacate {
namespace {

int deliver_shm(const ShmOptions& options, const ShmReport& report, const std::string& text) {
  const int code = report.interrupted_by != 0 ? 128 + report.interrupted_by : number_of(exit_code_of(report.verdict));
  return delivered(options.format == OutputFormat::json ? render_shm_json(report) : text, code);
}

int decline_shm(const ShmOptions& options, ShmReport& report, std::string_view why) {
  decline_clean(report);
  const int code =
      options.format == OutputFormat::json ? deliver_shm(options, report, "") : number_of(exit_code_of(report.verdict));
  complain(why);
  return code;
}

int remove_segments(const ShmOptions& options, ShmReport& report) {
  auto signals = SignalWatch::start();
  if (!signals) return complain_about(signals.error());
  MachineLog log;
  carry_out_clean(report, log, signals->descriptor());
  report.interrupted_by = signals->caught();
  return deliver_shm(options, report, render_shm_outcome_text(report, style_for(STDOUT_FILENO)));
}

int clean_shm(const ShmOptions& options, ShmReport& report) {
  plan_clean(report, options.request);
  const RenderStyle style = style_for(STDOUT_FILENO);
  if (report.plan.steps.empty()) return deliver_shm(options, report, render_shm_outcome_text(report, style));
  if (options.mode == Mode::dry_run)
    return deliver_shm(options, report, render_shm_plan_text(report, style) + "dry run: nothing was removed\n");
  const bool asks = options.mode == Mode::ask;
  if (asks && !(is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO)))
    return decline_shm(options, report, "nothing was done: there is no terminal to ask on; add --yes to go ahead");
  if (asks || options.format == OutputFormat::text) {
    const int descriptor = options.format == OutputFormat::json ? STDERR_FILENO : STDOUT_FILENO;
    const auto shown = write_all(descriptor, render_shm_plan_text(report, style_for(descriptor)));
    if (!shown && asks) return complain_about(shown.error());
  }
  if (asks && !ask_yes_no("Proceed? [y/N] ")) return decline_shm(options, report, "nothing was done");
  return remove_segments(options, report);
}

}  // namespace

int run_shm(const ShmOptions& options) {
  if (const auto works = check_scan(options.request.scan); !works) return complain_about(works.error());
  auto report = look_at_shm(options.request);
  if (!report) return complain_about(report.error());
  if (options.clean) return clean_shm(options, *report);
  return deliver_shm(options, *report, render_shm_text(*report, style_for(STDOUT_FILENO)));
}

}  // namespace vacate
