// SPDX-License-Identifier: Apache-2.0
#include "unit/dropin.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "unit/service_facts.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kReserve{60'000};      // from the end of the wait to that of the start's time
constexpr milliseconds kCleanUp{60'000};      // vacate free's own limit
constexpr milliseconds kStopTimeout{90'000};  // more than that, BR-155

bool is_plain(std::string_view text, std::string_view beside) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           beside.find(c) != std::string_view::npos;
  });
}

Result<void> check(const DropinRequest& request) {
  if (request.name.is_template())
    return Error{ErrorCode::malformed, fmt::format("{} is a template: name an instance, as in {}@0.service",
                                                   request.name.full(), request.name.prefix)};
  if (request.program.empty() || request.program.front() != '/' || !is_plain(request.program, "/._+-"))
    return Error{ErrorCode::refused, fmt::format("the path of vacate, '{}', has characters that a unit would misread",
                                                 printable(request.program, 200))};
  for (const auto& gpu : request.gpus)
    if (!is_plain(gpu, "-:."))
      return Error{ErrorCode::malformed,
                   fmt::format("--gpu: '{}' is no index, UUID or PCI bus id", printable(gpu, 64))};
  return {};
}

/// The name as a word of a command line: systemd resolves backslashes there.
std::string escaped(const std::string& name) {
  std::string word;
  for (const char c : name) word += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return word;
}

void add_timeouts(const ServiceFacts& facts, const UnitSettings& present, milliseconds wait, std::string& text) {
  if (!facts.may_extend())
    text += "# Lets the wait say in 'systemctl status' who is in the way, and ask for more time.\nNotifyAccess=exec\n";
  const milliseconds needs = wait.count() == 0 ? milliseconds::max() : wait + kReserve;
  // Without a start command nothing is known of the unit, not even its type.
  const bool is_known = !present.list("Service", "ExecStart").empty();
  if (facts.start_timeout < needs || !is_known)
    text += fmt::format("# Longer than the wait below.\nTimeoutStartSec={}\n", time_span_text(needs));
  if (!facts.sets_stop_timeout || facts.stop_timeout <= kCleanUp)
    text += fmt::format("# Longer than the clean-up below.\nTimeoutStopSec={}\n", time_span_text(kStopTimeout));
}

}  // namespace

Result<std::string> render_dropin(const DropinRequest& request, const UnitSettings& present) {
  if (auto fits = check(request); !fits) return fits.error();
  const ServiceFacts facts = service_facts(present, request.name.prefix);
  const std::string unit = escaped(request.name.full());
  std::string text = fmt::format("{} {}'\n", kDropinMark, request.name.full());
  if (!request.gpus_remark.empty()) text += fmt::format("# {}\n", printable(request.gpus_remark, 400));
  text += "\n[Service]\n";
  add_timeouts(facts, present, request.wait, text);
  const bool keeps_mode = present.last("Service", "KillMode") != nullptr &&
                          (facts.kill_mode == "mixed" || facts.kill_mode == "control-group");
  if (!keeps_mode)
    text += "# The main process is asked to stop first, then everything left in the unit is ended.\nKillMode=mixed\n";
  text += fmt::format(
      "# As root, whatever User= says: ends proven leftovers, then waits until the GPUs are free.\n"
      "ExecStartPre=+{} wait --gpu {} --reap --timeout {}\n",
      request.program, fmt::join(request.gpus, ","), request.wait.count() == 0 ? "0" : time_span_text(request.wait));
  text += "# After every stop, also a failed one: ends what this unit left on GPUs, and nothing else.\n";
  // --all ends live work of another user only where that user is named.
  if (!facts.is_of_root() && facts.account.empty())
    text += "# Its user has no name that could be written here: live work of that user is refused, not ended.\n";
  text +=
      fmt::format("ExecStopPost=+{} free --unit {}{} --all --yes --timeout {}\n", request.program, unit,
                  facts.account.empty() ? "" : fmt::format(" --user {},root", facts.account), time_span_text(kCleanUp));
  return text;
}

}  // namespace vacate
