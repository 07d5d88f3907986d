// SPDX-License-Identifier: Apache-2.0
#include "app/look.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "app/select.h"
#include "app/version.h"
#include "attribute/attribute.h"
#include "plan/narrowing.h"
#include "plan/selection.h"

namespace vacate {

Look look_at_machine(DriverSession& driver, const Policy& policy) {
  Look look{take_scan(driver, policy), {}};
  look.attribution = attribute_holders(look.scan.snapshot, policy);
  return look;
}

namespace {

/// What `free` would say of each pid that no holder has.
std::vector<std::string> unmatched_pids(const Look& look, const Selection& selection) {
  std::vector<std::string> lines;
  for (const auto& wanted : selection.pids) {
    FreeRequest request;
    request.selection.pids = {wanted};
    if (const auto checked = Selector(look.scan.snapshot, request).check(look.attribution); !checked)
      lines.push_back(checked.error().message);
  }
  return lines;
}

}  // namespace

Result<StatusReport> report_status(Look look, const std::vector<std::string>& gpu_words, Asked asked) {
  Selection& selection = asked.selection;
  if (!gpu_words.empty()) {
    auto gpus = resolve_gpus(gpu_words, look.scan.snapshot.gpus);
    if (!gpus) return gpus.error();
    selection.all_gpus = false;
    selection.gpus = std::move(*gpus);
  }
  if (auto checked = check_narrowing(look.scan.snapshot, selection); !checked) return checked.error();
  StatusReport report;
  report.version = kVersion;
  report.unmatched = unmatched_words(look.scan.snapshot, look.attribution, selection);
  for (auto& line : unmatched_pids(look, selection)) report.unmatched.push_back(std::move(line));
  report.attribution = narrowed(look.attribution, look.scan.snapshot, selection);
  report.advice = advise(look.scan.snapshot, report.attribution, asked);
  report.of_selected = !selection.all_gpus || narrows_holders(selection);
  report.snapshot = std::move(look.scan.snapshot);
  return report;
}

bool is_driver_silent(const Snapshot& snapshot) noexcept {
  return snapshot.driver.state != DriverState::ok && !snapshot.nodes.empty();
}

namespace {

bool has_spot(const Visibility& visibility, std::initializer_list<std::string_view> codes) {
  return std::any_of(visibility.blind_spots.begin(), visibility.blind_spots.end(), [&](const BlindSpot& spot) {
    return std::find(codes.begin(), codes.end(), spot.code) != codes.end();
  });
}

}  // namespace

bool knows_own_chain(const Snapshot& snapshot) noexcept { return !has_spot(snapshot.visibility, {"caller-failed"}); }

bool failed_to_read(const Snapshot& snapshot) noexcept {
  const bool denied = snapshot.caller.root && has_spot(snapshot.visibility, {"fd-denied", "maps-denied"});
  return denied || has_spot(snapshot.visibility,
                            {"no-proc", "proc-unlisted", "fd-failed", "maps-failed", "maps-timeout", "details-failed",
                             "pipes-failed", "sockets-failed", "clients-unknown", "nodes-failed", "not-pinned"});
}

bool may_have_missed_all(const Snapshot& snapshot, const Selection& selection) {
  if (is_driver_silent(snapshot) ||
      has_spot(snapshot.visibility, {"no-proc", "proc-unlisted", "fd-failed", "maps-failed", "details-failed",
                                     "pipes-failed", "nodes-failed", "caller-failed", "not-pinned"}))
    return true;
  const auto& caller = snapshot.caller;
  const bool names_places = !selection.units.empty() || !selection.containers.empty() || !selection.jobs.empty() ||
                            !selection.cgroups.empty();
  const bool names_others =
      std::any_of(selection.users.begin(), selection.users.end(), [&](uid_t uid) { return uid != caller.uid; });
  // What others hold in a unit, container or job cannot be read either.
  return !caller.root && !snapshot.visibility.all_references &&
         (names_others || (names_places && selection.users.empty()));
}

ExitCode exit_code_of(const Snapshot& snapshot) noexcept {
  const bool blind = has_spot(snapshot.visibility, {"no-proc", "proc-unlisted"});
  return blind || is_driver_silent(snapshot) ? ExitCode::cannot_tell : ExitCode::done;
}

ExitCode exit_code_of(const StatusReport& report) noexcept { return exit_code_of(report.snapshot); }

}  // namespace vacate
