// SPDX-License-Identifier: Apache-2.0
// The rows of `vacate doctor` as text and as JSON.
#include <algorithm>

#include <fmt/format.h>

#include "report/doctor.h"
#include "report/format.h"
#include "report/json_parts.h"

namespace vacate {
namespace {

Paint paint_for(Health health) {
  switch (health) {
    case Health::good:
      return Paint::good;
    case Health::limited:
      return Paint::doubtful;
    case Health::missing:
      return Paint::bad;
    case Health::unknown:
      return Paint::faint;
  }
  return Paint::plain;
}

}  // namespace

std::string render_doctor_text(const DoctorReport& report, const RenderStyle& style) {
  static constexpr std::size_t kStateColumns = 9;
  const auto checks = examine(report);
  std::string text;
  for (const auto& check : checks) {
    const std::string state(describe(check.health));
    const std::string rows = wrap(printable(check.finding), kStateColumns, style.width);
    text += painted(state, paint_for(check.health), style) + std::string(kStateColumns - state.size(), ' ') +
            rows.substr(kStateColumns);
    if (!check.cost.empty()) text += wrap("costs: " + printable(check.cost), kStateColumns + 2, style.width);
    if (!check.remedy.empty()) text += wrap("to get it: " + printable(check.remedy), kStateColumns + 2, style.width);
  }
  for (const auto& spot : report.snapshot.visibility.blind_spots)
    text += wrap(fmt::format("not seen: {} ({})", printable(spot.detail), printable(spot.code)), 0, style.width);
  const auto good = static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(), [](const Check& check) { return check.health == Health::good; }));
  return text + fmt::format("{} of {} checks are good\n", good, checks.size());
}

std::string render_doctor_json(const DoctorReport& report) {
  using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer
  Json object;
  object["schema"] = "vacate.doctor/1";
  object["version"] = safe(report.version);
  object["time"] = format_rfc3339(report.snapshot.time);
  object["host"] = host_json(report.snapshot.host);
  object["driver"] = driver_json(report.snapshot.driver);
  object["visibility"] = visibility_json(report.snapshot.visibility);
  object["checks"] = list_of(examine(report), [](const Check& check) {
    Json entry;
    entry["code"] = safe(check.code);
    entry["state"] = describe(check.health);
    entry["finding"] = safe(check.finding);
    entry["cost"] = check.cost.empty() ? Json(nullptr) : safe(check.cost);
    entry["remedy"] = check.remedy.empty() ? Json(nullptr) : safe(check.remedy);
    return entry;
  });
  return one_line(object);
}

}  // namespace vacate
