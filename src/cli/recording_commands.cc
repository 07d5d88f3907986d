// SPDX-License-Identifier: Apache-2.0
// `record`, and the commands that read a recording in place of the machine. A recording is only read: whoever may have
// written to it, nothing of it is executed and nobody in it can be signalled, so any regular file is taken.
#include <unistd.h>

#include <fmt/format.h>

#include "app/load_policy.h"
#include "app/replay.h"
#include "base/text.h"
#include "cli/command_parts.h"
#include "cli/terminal.h"
#include "os/private_file.h"

namespace vacate {

Result<Look> look_at_file(const std::string& path, const Policy& policy) {
  const auto text = read_regular_file(path, kLargestRecording);
  if (!text) return text.error().within("--replay");
  auto recording = parse_snapshot_json(*text);
  if (!recording) return recording.error().within(fmt::format("--replay '{}'", printable(path, 200)));
  return look_at_recording(std::move(*recording), policy);
}

int record(const RecordOptions& options) {
  Policy policy;
  policy.scan = options.scan;
  if (const auto works = check_scan(options.scan); !works) return complain_about(works.error());
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  const Snapshot seen = take_scan(*driver, policy).snapshot;
  const std::string text =
      render_snapshot_json(record_of(seen, options.redact ? Redaction::for_the_public : Redaction::none));
  const int code = number_of(exit_code_of(seen));
  if (!options.file) return delivered(text, code);
  if (const auto written = write_private_file(*options.file, text); !written) return complain_about(written.error());
  return code;
}

int replay(const StatusOptions& options) {
  const auto loaded = load_named_policy(options.policy_file);
  if (!loaded) return complain_about(loaded.error());
  const Policy& policy = *loaded;
  auto look = look_at_file(*options.replay, policy);
  if (!look) return complain_about(look.error());
  const auto& words = options.words;
  auto users = resolve_recorded_users(words.users, look->scan.snapshot);
  if (!users) return complain_about(users.error());
  auto report = report_status(
      std::move(*look), words.gpus,
      {Selection{{}, true, options.pids, std::move(*users), words.units, words.containers, words.jobs, words.cgroups},
       options.policy_file});
  if (!report) return complain_about(report.error());
  report->source = Source::recording;
  const std::string text = options.format == OutputFormat::json ? render_status_json(*report)
                                                                : render_status_text(*report, style_for(STDOUT_FILENO));
  return delivered(text, number_of(exit_code_of(*report)));
}

int replay(const FreeOptions& options) {
  const auto loaded = load_named_policy(options.policy_file);
  if (!loaded) return complain_about(loaded.error());
  const Policy& policy = *loaded;
  FreeRequest request = options.request;
  auto look = look_at_file(*options.replay, policy);
  if (!look) return complain_about(look.error());
  const auto& words = options.words;
  auto users = resolve_recorded_users(words.users, look->scan.snapshot);
  if (!users) return complain_about(users.error());
  request.selection.users = std::move(*users);
  auto prepared = prepare_free(std::move(*look), options.words.gpus, std::move(request), Deadline::Clock::now());
  if (!prepared) return complain_about(prepared.error());
  prepared->policy_file = options.policy_file;
  for (const auto& line : prepared->unmatched) complain(line);
  return rehearse_free(options, *prepared, policy);
}

}  // namespace vacate
