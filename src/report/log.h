// SPDX-License-Identifier: Apache-2.0
// What `vacate log` prints: the record of what was done, an action from its two entries, for people and as
// vacate.log/1. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/action_entry.h"
#include "model/exit_code.h"
#include "model/process.h"
#include "report/render_style.h"

namespace vacate {

/// An action: announced, done or not, answered for or not.
struct LoggedAction {
  ActionEntry entry;            ///< the intent; the result where no intent was found
  bool announced = true;        ///< false: only the result was found
  std::optional<double> ended;  ///< when the result was recorded; nothing: whether it was done is not known
  std::string source;           ///< "journal", or the path of the file
};

struct LogSource {
  enum class State { read, absent, unreadable };
  std::string name;  ///< "journal", or the path of the file
  State state = State::absent;
  std::string detail;  ///< why it could not be read, or not whole
  std::size_t entries = 0;
  std::size_t damaged = 0;  ///< lines that are none of ours, or torn
};

/// Which are wanted: all of these hold.
struct LogFilter {
  std::optional<double> since;        ///< seconds since the epoch
  std::vector<ProcessSelector> pids;  ///< of what it was done to; none: all
  std::string plan;                   ///< the beginning of the id; empty: all
};

struct LogReport {
  std::vector<LogSource> sources;
  std::vector<LoggedAction> actions;  ///< newest last
};

/// Puts the entries of one or more sources together. Entries of different users are never one action.
[[nodiscard]] std::vector<LoggedAction> join_entries(const std::vector<std::pair<ActionEntry, std::string>>& entries);

[[nodiscard]] bool is_wanted(const LoggedAction& action, const LogFilter& filter);

/// done, or cannot_tell where a source that is there could not be read.
[[nodiscard]] ExitCode exit_code_of(const LogReport& report) noexcept;

[[nodiscard]] std::string render_log_text(const LogReport& report, const RenderStyle& style);
/// One JSON object and a line feed.
[[nodiscard]] std::string render_log_json(const LogReport& report);

}  // namespace vacate
