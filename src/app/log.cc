// SPDX-License-Identifier: Apache-2.0
#include "app/log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "execute/machine_log.h"
#include "os/append_file.h"
#include "os/journal_reader.h"
#include "report/action_line.h"

namespace vacate {
namespace {

using Entries = std::vector<std::pair<ActionEntry, std::string>>;

constexpr std::chrono::seconds kJournalPatience{20};
constexpr std::size_t kMostOfFile = std::size_t{64} << 20U;
/// A result may be so much later than the announcement that it belongs to.
constexpr double kLongestAction = 600;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

void take_line(std::string_view line, std::optional<uid_t> seen_uid, LogSource& source, Entries& entries) {
  auto entry = parse_action_line(line);
  if (!entry) {
    ++source.damaged;
    return;
  }
  if (seen_uid) entry->author.uid = *seen_uid;
  ++source.entries;
  entries.emplace_back(std::move(*entry), source.name);
}

LogSource read_file(Entries& entries) {
  LogSource source{kRecordFile, LogSource::State::read, "", 0, 0};
  const auto tail = read_tail(kRecordFile, kMostOfFile);
  if (!tail) {
    const bool is_absent = tail.error().code == ErrorCode::gone;
    source.state = is_absent ? LogSource::State::absent : LogSource::State::unreadable;
    if (!is_absent) source.detail = tail.error().message;
    return source;
  }
  for (const auto line : split(tail->text, '\n'))
    if (!line.empty()) take_line(line, std::nullopt, source, entries);
  if (!tail->beginning) source.detail = fmt::format("only the last {} MiB", kMostOfFile >> 20U);
  return source;
}

/// Anybody can write to the journal: whose an entry is says the journal, and one of which it does not is nobody's.
LogSource read_journal(std::optional<double> since, Entries& entries) {
  LogSource source{"journal", LogSource::State::read, "", 0, 0};
  if (!has_journal()) {
    source.state = LogSource::State::absent;
    return source;
  }
  JournalQuestion question{kRecordMessageId, "VACATE_RECORD"};
  if (since) question.since = static_cast<std::uint64_t>(std::max(0.0, *since) * 1e6);
  const auto answers = read_journal(question, Deadline::after(kJournalPatience));
  if (!answers) {
    source.state = LogSource::State::unreadable;
    source.detail = answers.error().message;
    return source;
  }
  for (const auto& answer : *answers) {
    if (answer.uid)
      take_line(answer.value, answer.uid, source, entries);
    else
      ++source.damaged;
  }
  return source;
}

}  // namespace

LogReport read_log(const LogRequest& request) {
  LogFilter filter{std::nullopt, request.pids, request.plan};
  std::optional<double> since;
  if (request.since) {
    filter.since = now() - std::chrono::duration<double>(*request.since).count();
    since = *filter.since - kLongestAction;
  }
  LogReport report;
  Entries entries;
  report.sources.push_back(read_journal(since, entries));
  report.sources.push_back(read_file(entries));
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first.time < b.first.time; });
  report.actions = join_entries(entries);
  std::erase_if(report.actions, [&](const LoggedAction& action) { return !is_wanted(action, filter); });
  return report;
}

}  // namespace vacate
