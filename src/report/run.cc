// SPDX-License-Identifier: Apache-2.0
#include "report/run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"
#include "report/json_parts.h"

namespace vacate {
namespace {

using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer

constexpr std::size_t kOneLine = 4096;

bool is_left(const EndedProcess& process) { return process.status != StepStatus::gone; }

std::string name_of(const EndedProcess& process) {
  static constexpr std::size_t kLongestTitle = 60;
  return fmt::format("{} ({})", process.key.pid, printable(process.title, kLongestTitle));
}

/// "4711 (python), 4712 (python) and 3 more".
std::string names_of(const EndOfFamily& left, bool those_left) {
  static constexpr std::size_t kMostInALine = 8;
  std::string line;
  std::size_t named = 0, more = those_left ? 0 : left.unnamed;
  for (const auto& process : left.processes) {
    if (is_left(process) != those_left) continue;
    if (++named > kMostInALine)
      ++more;
    else
      line += (line.empty() ? "" : ", ") + name_of(process);
  }
  return more == 0 ? line : fmt::format("{} and {} more", line, more);
}

std::string place_of(const RunOutcome& outcome) {
  return outcome.control_group.empty() ? "by descent" : "by control group and descent";
}

Json left_of(const EndedProcess& process) {
  Json object;
  object["pid"] = process.key.pid;
  object["key"] = to_string(process.key);
  object["title"] = safe(process.title);
  put_ending(object, process);
  return object;
}

Json command_of(const RunOutcome& outcome) {
  Json object;
  object["argv"] = texts(outcome.argv);
  object["pid"] = outcome.pid == 0 ? Json(nullptr) : Json(outcome.pid);
  const bool ended = outcome.status.has_value();
  const int signal = ended ? *outcome.status & 0x7F : 0;
  object["exit"] = ended && signal == 0 ? Json((*outcome.status >> 8) & 0xFF) : Json(nullptr);
  object["signal"] = signal != 0 ? Json(signal) : Json(nullptr);
  object["problem"] = outcome.exec_problem.empty() ? Json(nullptr) : safe(outcome.exec_problem);
  return object;
}

Json containment_of(const RunOutcome& outcome) {
  Json object;
  const bool has_group = !outcome.control_group.empty();
  object["kind"] = has_group ? "cgroup" : "subreaper";
  object["cgroup"] = has_group ? safe(outcome.control_group) : Json(nullptr);
  if (!has_group)
    object["cgroup_unknown"] =
        safe(outcome.no_control_group.empty() ? "nobody was put into one" : outcome.no_control_group);
  return object;
}

}  // namespace

std::vector<std::string> render_run_lines(const RunOutcome& outcome, RunDetail detail) {
  std::vector<std::string> lines;
  if (!outcome.failure.empty()) lines.push_back(outcome.failure);
  if (outcome.exec_errno != 0)
    lines.push_back(fmt::format("'{}' {}", printable(outcome.argv.front(), 200), outcome.exec_problem));
  const std::string ended = names_of(outcome.left, false);
  if (!ended.empty() && detail == RunDetail::what_was_ended)
    lines.push_back(fmt::format("the command left processes behind (found {}), ended: {}", place_of(outcome), ended));
  if (outcome.left.somebody_left) {
    const std::string names = names_of(outcome.left, true);
    lines.push_back(names.empty() ? "a process that cannot be seen from here is left of the command"
                                  : fmt::format("left of the command: {}", names));
  }
  for (const auto& process : outcome.left.processes)
    if (is_left(process) && !process.detail.empty())
      lines.push_back(fmt::format("{}: {}", name_of(process), printable(process.detail)));
  lines.insert(lines.end(), outcome.unreleased.begin(), outcome.unreleased.end());
  if (const auto line = unrecorded_line(outcome.record, kOneLine); detail == RunDetail::what_was_ended && !line.empty())
    lines.emplace_back(trim(line));
  return lines;
}

std::string render_run_json(const RunOutcome& outcome) {
  Json object;
  object["schema"] = "vacate.run/1";
  object["verdict"] = describe(verdict_of(outcome));
  object["exit"] = exit_code_of(outcome);
  object["command"] = command_of(outcome);
  object["containment"] = containment_of(outcome);
  object["left"] = list_of(outcome.left.processes, left_of);
  object["left_unnamed"] = outcome.left.unnamed;
  object["gpus"] = list_of(outcome.gpus, release_json);
  object["shm"] = shm_cleanup_json(outcome.shm);
  object["record"] = record_json(outcome.record);
  object["problems"] = texts(render_run_lines(outcome, RunDetail::what_went_wrong));
  object["seconds"] = seconds_of(outcome.seconds);
  object["visibility"] = visibility_json(outcome.visibility);
  return one_line(object);
}

}  // namespace vacate
