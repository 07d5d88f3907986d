// SPDX-License-Identifier: Apache-2.0
#include "report/log.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/format.h"
#include "report/json_parts.h"

namespace vacate {
namespace {

using json::Json;

constexpr std::string_view kNotKnown = "not known";

std::string_view describe(LogSource::State state) {
  switch (state) {
    case LogSource::State::read:
      return "read";
    case LogSource::State::absent:
      return "absent";
    case LogSource::State::unreadable:
      return "unreadable";
  }
  return "unreadable";
}

/// "2026-03-01 17:04:05Z"
std::string time_for_people(double epoch) {
  std::string text = format_rfc3339(epoch).substr(0, 19) + "Z";
  text[10] = ' ';
  return text;
}

std::string what_of(const ActionEntry& entry) {
  return printable(entry.signal.empty() ? entry.action : entry.signal, 16);
}

std::string whom_of(const ActionEntry& entry) {
  std::string whom = printable(entry.key.empty() ? entry.target : entry.key);
  if (!entry.title.empty()) whom += " " + printable(entry.title);
  return whom;
}

std::string result_of(const LoggedAction& action) {
  return action.ended ? printable(action.entry.result, 16) : std::string(kNotKnown);
}

Paint paint_for(const LoggedAction& action) {
  if (!action.ended) return Paint::bad;
  return action.entry.result == "done" || action.entry.result == "gone" ? Paint::plain : Paint::doubtful;
}

struct LogWidths {
  std::size_t what = 6, result = 6;
};

LogWidths widths_of(const std::vector<LoggedAction>& actions) {
  LogWidths widths;
  for (const auto& action : actions) {
    widths.what = std::max(widths.what, display_width(what_of(action.entry)));
    widths.result = std::max(widths.result, display_width(result_of(action)));
  }
  return widths;
}

std::string row(const std::string& time, const std::string& what, const std::string& whom, const std::string& result,
                const LogWidths& widths, const RenderStyle& style) {
  const std::size_t taken = 20 + widths.what + widths.result + 6;
  const std::size_t room = style.width > taken + 12 ? style.width - taken : 12;
  return fmt::format("{}  {}  {}  {}\n", pad_right(time, 20), pad_right(what, widths.what),
                     pad_right(elide_middle(whom, room), room), result);
}

/// Who had it done, and why.
std::string second_line(const LoggedAction& action, const RenderStyle& style) {
  const auto& entry = action.entry;
  std::string text = entry.plan.empty() ? fmt::format("step {}", entry.n)
                                        : fmt::format("plan {} step {}", printable(entry.plan, 64), entry.n);
  text += fmt::format(", by uid {}", entry.author.uid);
  if (entry.author.login_uid && *entry.author.login_uid != entry.author.uid)
    text += fmt::format(", logged in as uid {}", *entry.author.login_uid);
  std::vector<std::string> reasons;
  for (const auto& reason : entry.because) reasons.push_back(printable(reason));
  if (!reasons.empty()) text += fmt::format(": {}", fmt::join(reasons, "; "));
  if (!action.announced) text += "; its announcement was not found";
  if (!action.ended) text += "; vacate ended, or could not record, before it said what came of it";
  if (!entry.detail.empty()) text += "; " + printable(entry.detail);
  return wrap(text, 4, style.width);
}

std::string source_lines(const LogReport& report, const RenderStyle& style) {
  std::string text;
  for (const auto& source : report.sources) {
    if (source.damaged != 0)
      text += wrap(fmt::format("{} of {} could not be read", counted(source.damaged, "damaged line", "damaged lines"),
                               printable(source.name)),
                   0, style.width);
    if (!source.detail.empty())
      text += wrap(fmt::format("not read{}: {}", source.state == LogSource::State::read ? " whole" : "",
                               printable(source.detail)),
                   0, style.width);
  }
  return text;
}

Json action_json(const LoggedAction& action) {
  const auto& entry = action.entry;
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : json::safe(value); };
  Json object;
  object["time"] = format_rfc3339(entry.time);
  object["ended"] = action.ended ? Json(format_rfc3339(*action.ended)) : Json(nullptr);
  object["run"] = json::safe(entry.author.run);
  object["number"] = entry.number;
  object["plan"] = text(entry.plan);
  object["n"] = entry.n;
  object["action"] = json::safe(entry.action);
  object["signal"] = text(entry.signal);
  object["key"] = text(entry.key);
  object["pid"] = entry.pid != 0 ? Json(entry.pid) : Json(nullptr);
  object["target"] = text(entry.target);
  object["title"] = text(entry.title);
  object["because"] = json::texts(entry.because);
  object["result"] = action.ended ? json::safe(entry.result) : Json(nullptr);
  if (!action.ended) object["result_unknown"] = "not recorded";
  object["detail"] = text(entry.detail);
  object["announced"] = action.announced;
  object["boot_id"] = text(entry.boot_id);
  object["vacate_pid"] = entry.author.pid;
  object["uid"] = entry.author.uid;
  object["login_uid"] = entry.author.login_uid ? Json(*entry.author.login_uid) : Json(nullptr);
  object["source"] = json::safe(action.source);
  return object;
}

Json source_json(const LogSource& source) {
  Json object;
  object["name"] = json::safe(source.name);
  object["state"] = describe(source.state);
  object["entries"] = source.entries;
  object["damaged"] = source.damaged;
  object["detail"] = source.detail.empty() ? Json(nullptr) : json::safe(source.detail);
  return object;
}

}  // namespace

std::vector<LoggedAction> join_entries(const std::vector<std::pair<ActionEntry, std::string>>& entries) {
  std::vector<LoggedAction> actions;
  std::map<std::tuple<uid_t, std::string, std::uint64_t>, std::size_t> open;  // announced, not answered for
  for (const auto& [entry, source] : entries) {
    const auto key = std::make_tuple(entry.author.uid, entry.author.run, entry.number);
    const auto known = open.find(key);
    if (entry.phase == EntryPhase::intent) {
      open[key] = actions.size();
      actions.push_back({entry, true, std::nullopt, source});
    } else if (known != open.end()) {
      auto& action = actions[known->second];
      action.ended = entry.time;
      action.entry.result = entry.result;
      action.entry.detail = entry.detail;
      open.erase(known);
    } else {
      actions.push_back({entry, false, entry.time, source});
    }
  }
  std::stable_sort(actions.begin(), actions.end(),
                   [](const auto& a, const auto& b) { return a.entry.time < b.entry.time; });
  return actions;
}

bool is_wanted(const LoggedAction& action, const LogFilter& filter) {
  if (filter.since && action.entry.time < *filter.since) return false;
  if (!action.entry.plan.starts_with(filter.plan)) return false;
  if (filter.pids.empty()) return true;
  const auto selector = parse_process_selector(action.entry.key);
  if (!selector) return false;
  const ProcessKey key{selector->pid, selector->start_ticks.value_or(0), 0, 0};
  return std::any_of(filter.pids.begin(), filter.pids.end(),
                     [&](const ProcessSelector& wanted) { return wanted.matches(key); });
}

ExitCode exit_code_of(const LogReport& report) noexcept {
  const bool unreadable = std::any_of(report.sources.begin(), report.sources.end(), [](const LogSource& source) {
    return source.state == LogSource::State::unreadable;
  });
  return unreadable ? ExitCode::cannot_tell : ExitCode::done;
}

std::string render_log_text(const LogReport& report, const RenderStyle& style) {
  const LogWidths widths = widths_of(report.actions);
  std::string text;
  if (!report.actions.empty())
    text += painted(row("TIME (UTC)", "ACTION", "TO", "RESULT", widths, style), Paint::faint, style);
  for (const auto& action : report.actions) {
    const auto& entry = action.entry;
    const std::string line =
        row(time_for_people(entry.time), what_of(entry), whom_of(entry), result_of(action), widths, style);
    text += painted(line, paint_for(action), style) + second_line(action, style);
  }
  if (report.actions.empty()) text += "nothing is recorded that fits\n";
  return text + source_lines(report, style);
}

std::string render_log_json(const LogReport& report) {
  Json object;
  object["schema"] = "vacate.log/1";
  object["exit"] = static_cast<int>(exit_code_of(report));
  object["sources"] = json::list_of(report.sources, source_json);
  std::size_t damaged = 0;
  for (const auto& source : report.sources) damaged += source.damaged;
  object["damaged"] = damaged;
  object["actions"] = json::list_of(report.actions, action_json);
  return json::one_line(object);
}

}  // namespace vacate
