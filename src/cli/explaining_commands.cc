// SPDX-License-Identifier: Apache-2.0
// `why` and `doctor`: look, and say what was found. Nothing is changed.
#include <unistd.h>

#include <algorithm>

#include "app/load_policy.h"
#include "app/replay.h"
#include "app/version.h"
#include "app/why.h"
#include "cli/command_parts.h"
#include "cli/terminal.h"
#include "os/machine_facts.h"
#include "probe/scan_bpf.h"
#include "report/doctor.h"

namespace vacate {
namespace {

Result<Look> look_now(const Policy& policy) {
  auto driver = DriverSession::start();
  if (!driver) return driver.error();
  return look_at_machine(*driver, policy);
}

}  // namespace

int explain(const WhyOptions& options) {
  const auto loaded =
      options.replay ? load_named_policy(options.policy_file) : load_policy_and_scan(options.policy_file, options.scan);
  if (!loaded) return complain_about(loaded.error());
  const Policy& policy = *loaded;
  auto look = options.replay ? look_at_file(*options.replay, policy) : look_now(policy);
  if (!look) return complain_about(look.error());
  auto users = options.replay ? resolve_recorded_users(options.words.users, look->scan.snapshot)
                              : resolve_users(options.words.users);
  if (!users) return complain_about(users.error());
  const auto& words = options.words;
  Selection narrowing{{}, true, {}, std::move(*users), words.units, words.containers, words.jobs, words.cgroups};
  auto report = report_why(std::move(*look), {options.pids, words.gpus, std::move(narrowing)});
  if (!report) return complain_about(report.error());
  if (options.replay) report->source = Source::recording;
  const std::string text = options.format == OutputFormat::json ? render_why_json(*report)
                                                                : render_why_text(*report, style_for(STDOUT_FILENO));
  return delivered(text, number_of(exit_code_of(*report)));
}

int diagnose(const DoctorOptions& options) {
  Policy usual;
  usual.scan = options.scan;
  if (const auto works = check_scan(options.scan); !works) return complain_about(works.error());
  auto look = look_now(usual);
  if (!look) return complain_about(look.error());
  const auto policy = load_policy(std::nullopt);
  DoctorReport report{std::string(kVersion), read_machine_facts(), std::move(look->scan.snapshot)};
  report.scan = look->scan.use;
  const auto works = report.scan.used == ScanMethod::bpf ? Result<void>() : check_bpf_scan();  // used: it can be had
  if (!works) report.bpf_refused = works.error().message;
  if (policy) report.policy_rules = policy->rules.size();
  if (!policy) report.policy_error = policy.error().message;
  const std::string text = options.format == OutputFormat::json ? render_doctor_json(report)
                                                                : render_doctor_text(report, style_for(STDOUT_FILENO));
  const auto& spots = report.snapshot.visibility.blind_spots;
  const bool is_blind =
      std::any_of(spots.begin(), spots.end(), [](const BlindSpot& spot) { return spot.code == "no-proc"; });
  return delivered(text, number_of(is_blind ? ExitCode::cannot_tell : ExitCode::done));
}

}  // namespace vacate
