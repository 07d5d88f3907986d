// SPDX-License-Identifier: Apache-2.0
#include "cli/command_parts.h"

#include <unistd.h>

#include <fmt/format.h>

#include "app/load_policy.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "os/users.h"
#include "probe/scan_bpf.h"
#include "report/format.h"

namespace vacate {

int number_of(ExitCode code) noexcept { return static_cast<int>(code); }

int delivered(std::string_view text, int code) {
  auto written = write_all(STDOUT_FILENO, text);
  if (written) written = see_to_the_end(STDOUT_FILENO);
  if (written) return code;
  // A reader that has seen enough ('vacate status | head') needs no complaint; the exit code tells whoever asks.
  if (written.error().code != ErrorCode::gone) complain(written.error().message);
  return code != 0 ? code : number_of(ExitCode::cannot_tell);
}

int complain_about(const Error& error) {
  complain(error.message);
  switch (error.code) {
    case ErrorCode::malformed:
      return number_of(ExitCode::usage);
    case ErrorCode::denied:
    case ErrorCode::refused:
      return number_of(ExitCode::refused);
    case ErrorCode::bug:
      return number_of(ExitCode::defect);
    default:
      return number_of(ExitCode::cannot_tell);
  }
}

Result<void> check_scan(ScanMethod scan) {
  if (scan != ScanMethod::bpf) return {};
  const auto works = check_bpf_scan();
  if (works) return {};
  auto error = works.error().within("--scan bpf");
  error.message += "; without the option /proc is read, and 'vacate doctor' says what BPF needs";
  return error;
}

Result<Policy> load_policy_and_scan(const std::optional<std::string>& file, ScanMethod scan) {
  auto policy = load_policy(file);
  if (!policy) return policy;
  if (const auto works = check_scan(scan); !works) return works.error();
  policy->scan = scan;
  return policy;
}

Result<std::vector<uid_t>> resolve_users(const std::vector<std::string>& words) {
  std::vector<uid_t> uids;
  const Users users = Users::read();
  for (const auto& word : words) {
    auto named = users.find(word);
    if (!named) named = find_dynamic_user(word);
    const auto number = parse_unsigned(word);
    if (!named && (!number || *number > 0xFFFFFFFEU))
      return Error{ErrorCode::malformed,
                   fmt::format("--user: no user is '{}'; give a name or a number", printable(word, 64))};
    uids.push_back(named ? *named : static_cast<uid_t>(*number));
  }
  return uids;
}

int rehearse_free(const FreeOptions& options, const PreparedFree& prepared, const Policy& policy) {
  const Source source = options.replay ? Source::recording : Source::machine;
  FreeReport report = rehearse(prepared, policy);
  if (source == Source::recording) {  // the recorded machine waited for nothing
    report.outcome.seconds = 0;
    for (auto& gpu : report.outcome.gpus) gpu.seconds = 0;
  }
  const int code = number_of(exit_code_of(report.outcome));
  if (options.format == OutputFormat::json) return delivered(render_free_json(report.outcome, source), code);
  const RenderStyle style = style_for(STDOUT_FILENO);
  std::string text = source == Source::recording ? render_replay_line(prepared.before.snapshot, style) : "";
  text += prepared.plan.empty() ? render_outcome_text(report, style)
                                : render_plan_text(prepared.plan, prepared.request, style);
  if (!prepared.plan.empty()) {
    for (const auto& note : report.notes) text += wrap(printable(note), 0, style.width);
    text += render_container_advice(report.containers, style);
  }
  if (prepared.plan.ends_anybody()) text += "dry run: nothing was sent\n";
  return delivered(text, code);
}

}  // namespace vacate
