// SPDX-License-Identifier: Apache-2.0
// What holds for every report: the same machine gives the same bytes, whatever names its processes chose; text is whole
// lines that no terminal obeys, and JSON is valid.
#include <string>

#include <nlohmann/json.hpp>

#include "any_machine.h"
#include "attribute/attribute.h"
#include "base/text.h"
#include "laws.h"
#include "plan/plan_free.h"
#include "report/free.h"
#include "report/status.h"

namespace {

using namespace vacate;
using vacate::testing::any_snapshot;
using vacate::testing::below;
using vacate::testing::one_in;

std::string any_name() {
  static const std::vector<std::string> kPieces = {
      "python3",  "\n",           "\r",   "\t",       "\"",           "\\",
      "\x1b[2J",  "\x1b]0;x\x07", "\xff", "\xc3",     "\xe2\x80\xae", "\xed\xa0\x80",
      "/home/a/", "\xe6\x97\xa5", "\x7f", "\xc2\x9b", "%s",           "\xe2\x80\xa8"};
  if (one_in(12)) return std::string(std::size_t{128} << 10U, one_in(2) ? 'x' : '\n');
  std::string name;
  for (int i = below(8); i > 0; --i) name += kPieces[static_cast<std::size_t>(below(static_cast<int>(kPieces.size())))];
  return name;
}

Snapshot hostile_machine() {
  auto snapshot = any_snapshot();
  for (auto& process : snapshot.processes) {
    if (one_in(2)) continue;
    process.comm = any_name().substr(0, 15);
    process.argv = std::vector<std::string>{any_name(), any_name()};
    if (one_in(3)) process.exe = any_name();
    if (one_in(3)) process.user = any_name().substr(0, 40);
    if (one_in(3)) process.cgroup = "/" + any_name();
    if (one_in(4)) process.wchan = any_name().substr(0, 64);
  }
  for (auto& gpu : snapshot.gpus) {
    if (one_in(4)) gpu.name = any_name().substr(0, 96);
  }
  if (one_in(3)) snapshot.visibility.blind_spots.push_back({"code", any_name()});
  return snapshot;
}

StatusReport status_of(const Snapshot& snapshot) {
  StatusReport report;
  report.version = "0.1.0";
  report.snapshot = snapshot;
  report.attribution = attribute_holders(snapshot, Policy{});
  report.advice = advise(report.snapshot, report.attribution);
  return report;
}

Outcome dry_run_of(const Snapshot& snapshot, Scope scope) {
  FreeRequest request;
  request.scope = scope;
  Outcome outcome;
  outcome.dry_run = true;
  outcome.plan = plan_free(snapshot, attribute_holders(snapshot, Policy{}), request).value_or(Plan{});
  outcome.visibility = snapshot.visibility;
  return outcome;
}

void check_lines(const std::string& text) {
  RC_ASSERT(text.empty() || text.back() == '\n');
  for (const auto line : split(text, '\n')) RC_ASSERT(printable(line, line.size() + 1) == line);
}

void check_json(const std::string& text) {
  RC_ASSERT(nlohmann::json::accept(text));
  for (const char c : text) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
}

void same_machine_same_bytes() {
  const auto snapshot = hostile_machine();
  const auto copy = snapshot;
  RC_ASSERT(render_status_json(status_of(snapshot)) == render_status_json(status_of(copy)));
  RC_ASSERT(render_status_text(status_of(snapshot), {}) == render_status_text(status_of(copy), {}));
  const auto scope = static_cast<Scope>(below(3));
  RC_ASSERT(render_free_json(dry_run_of(snapshot, scope)) == render_free_json(dry_run_of(copy, scope)));
}

void text_is_lines_that_no_terminal_obeys() {
  const auto snapshot = hostile_machine();
  RenderStyle style;
  style.width = static_cast<std::size_t>(40 + below(100));
  check_lines(render_status_text(status_of(snapshot), style));
  FreeRequest request;
  request.scope = Scope::all;
  check_lines(render_plan_text(dry_run_of(snapshot, Scope::all).plan, request, style));
}

void a_title_costs_no_more_than_a_line() {
  const auto snapshot = hostile_machine();
  const std::string text = render_status_text(status_of(snapshot), {});
  for (const auto line : split(text, '\n')) RC_ASSERT(line.size() < 2000);
}

void json_is_valid_whatever_the_names() {
  const auto snapshot = hostile_machine();
  check_json(render_status_json(status_of(snapshot)));
  check_json(render_free_json(dry_run_of(snapshot, static_cast<Scope>(below(3)))));
}

// An unknown figure is null in JSON; it is never a number.
void unknown_is_null() {
  const auto snapshot = any_snapshot();
  const auto json = nlohmann::json::parse(render_status_json(status_of(snapshot)), nullptr, false);
  RC_ASSERT(json["gpus"].size() == snapshot.gpus.size());
  for (std::size_t i = 0; i < snapshot.gpus.size(); ++i) {
    const auto& memory = json["gpus"][i]["memory"];
    RC_ASSERT(memory["used"].is_null() == !snapshot.gpus[i].memory.used.known());
    RC_ASSERT(memory["total"].is_null() == !snapshot.gpus[i].memory.total.known());
    if (!snapshot.gpus[i].memory.used.known()) RC_ASSERT(json["gpus"][i]["remainder"].is_null());
  }
}

}  // namespace

int main() {
  return vacate::check_all({
      {"the same machine gives the same bytes", same_machine_same_bytes},
      {"text is lines that no terminal obeys", text_is_lines_that_no_terminal_obeys},
      {"a title costs no more than a line", a_title_costs_no_more_than_a_line},
      {"JSON is valid whatever the names", json_is_valid_whatever_the_names},
      {"unknown is null", unknown_is_null},
  });
}
