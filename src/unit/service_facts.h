// SPDX-License-Identifier: Apache-2.0
// What a service's settings amount to, with systemd's defaults filled in (systemd.service(5), systemd.kill(5); 252):
// the facts that the checks and the drop-in ask for. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unit/command_line.h"
#include "unit/unit_text.h"

namespace vacate {

/// "90", "1min 30s", "2h", "infinity" as systemd.time(7) has them; a bare number is seconds. Longest: max().
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_time_span(std::string_view text);
/// "infinity", "90s", "5min": as both systemd and vacate read it.
[[nodiscard]] std::string time_span_text(std::chrono::milliseconds span);

/// One command of the unit and where it stands.
struct PlacedCommand {
  const UnitSetting* setting = nullptr;
  UnitCommand command;
  /// Does it run on the way to the start: ExecCondition, ExecStartPre, ExecStart, ExecStartPost?
  [[nodiscard]] bool is_of_start() const noexcept;
  [[nodiscard]] bool is_of_stop() const noexcept;
};

struct ServiceFacts {
  std::vector<PlacedCommand> commands;  ///< in the order of the keys' life: condition, start, reload, stop
  std::string type;                     ///< as in effect
  std::string kill_mode;
  std::string notify_access;
  std::string restart;
  std::string user;  ///< empty or "root": root
  /// The account as a word of --user; empty: it is root, or its name cannot be told from here.
  std::string account;
  bool has_remain_after_exit = false;
  bool delegates = false;
  std::chrono::milliseconds start_timeout{0}, stop_timeout{0};
  bool sets_start_timeout = false, sets_stop_timeout = false;
  /// Does the text speak of GPUs: vacate, nvidia, CUDA?
  bool mentions_gpus = false;

  [[nodiscard]] bool is_of_root() const noexcept { return user.empty() || user == "root" || user == "0"; }
  /// May a command that is no main process tell systemd to wait longer?
  [[nodiscard]] bool may_extend() const noexcept { return notify_access == "exec" || notify_access == "all"; }
};

/// `settings` has to outlive what is returned. `prefix`: that of the unit's name, after which systemd calls the dynamic
/// user of a unit without User=.
[[nodiscard]] ServiceFacts service_facts(const UnitSettings& settings, std::string_view prefix);

/// The arguments of a command that runs vacate, from the word after the program on ("wait", "--gpu", ...), also behind
/// env, nice, timeout and the like; nothing if it runs something else.
[[nodiscard]] std::optional<std::vector<std::string>> vacate_arguments(const UnitCommand& command);
/// The value of an option in such arguments, "--timeout 5min" or "--timeout=5min".
[[nodiscard]] std::optional<std::string> option_value(const std::vector<std::string>& arguments, std::string_view name);

/// The script of `sh -c SCRIPT`, whatever the shell and its other options; nothing if the command is no shell.
[[nodiscard]] std::optional<std::string> shell_script(const UnitCommand& command);

}  // namespace vacate
