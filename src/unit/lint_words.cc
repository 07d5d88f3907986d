// SPDX-License-Identifier: Apache-2.0
// What systemd puts in the place of `$` and `%` before any program sees it (systemd.service(5), "Command lines";
// reports.md BR-120, BR-121; every form measured on 252).
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "unit/lint_parts.h"

namespace vacate {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_variable_name(std::string_view text) noexcept {
  return !text.empty() && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

/// One place where systemd puts the value of a variable.
struct VariableUse {
  std::string name;      ///< what systemd looks up, a name or not
  std::string written;   ///< "${free}"
  bool is_word = false;  ///< `$NAME` as a word of its own
};

/// `$NAME` is replaced as a whole word only, and then the whole word is the name, whatever is in it; `${NAME}`
/// anywhere.
/// `$$` is a dollar. Whether a word stood in quotes makes no difference.
std::vector<VariableUse> variables_in(std::string_view word) {
  if (word.starts_with('$') && !word.starts_with("${") && !word.starts_with("$$"))
    return {{std::string(word.substr(1)), std::string(word), true}};
  std::vector<VariableUse> uses;
  std::size_t at = 0;
  while (at < word.size()) {
    at = std::min(word.find('$', at), word.size());
    const std::string_view rest = word.substr(at);
    if (!rest.starts_with("${")) {
      at += rest.starts_with("$$") ? 2 : 1;
      continue;
    }
    const auto end = rest.find_first_of("}:");
    if (end == std::string_view::npos) break;
    if (rest[end] == ':') {  // `${NAME:-x}` stays as it is, but what is in it does not
      at += end;
      continue;
    }
    uses.push_back({std::string(rest.substr(2, end - 2)), std::string(rest.substr(0, end + 1)), false});
    at += end + 1;
  }
  return uses;
}

/// Names that systemd itself may set for the commands of a service (systemd.exec(5), 252).
constexpr auto kSetBySystemd = std::to_array<std::string_view>({"PATH",
                                                                "LANG",
                                                                "LANGUAGE",
                                                                "INVOCATION_ID",
                                                                "SYSTEMD_EXEC_PID",
                                                                "JOURNAL_STREAM",
                                                                "NOTIFY_SOCKET",
                                                                "WATCHDOG_PID",
                                                                "WATCHDOG_USEC",
                                                                "MANAGERPID",
                                                                "LISTEN_FDS",
                                                                "LISTEN_PID",
                                                                "LISTEN_FDNAMES",
                                                                "MAINPID",
                                                                "SERVICE_RESULT",
                                                                "EXIT_CODE",
                                                                "EXIT_STATUS",
                                                                "RUNTIME_DIRECTORY",
                                                                "STATE_DIRECTORY",
                                                                "CACHE_DIRECTORY",
                                                                "LOGS_DIRECTORY",
                                                                "CONFIGURATION_DIRECTORY",
                                                                "CREDENTIALS_DIRECTORY",
                                                                "PIDFILE",
                                                                "REMOTE_ADDR",
                                                                "REMOTE_PORT",
                                                                "TERM",
                                                                "XDG_RUNTIME_DIR",
                                                                "XDG_SESSION_ID",
                                                                "XDG_SEAT",
                                                                "XDG_VTNR",
                                                                "TRIGGER_UNIT",
                                                                "TRIGGER_PATH",
                                                                "TRIGGER_TIMER_REALTIME_USEC",
                                                                "TRIGGER_TIMER_MONOTONIC_USEC",
                                                                "MEMORY_PRESSURE_WATCH",
                                                                "MEMORY_PRESSURE_WRITE",
                                                                "FDSTORE",
                                                                "DEBUG_INVOCATION",
                                                                "SYSTEMD_LOG_LEVEL"});
/// Set for the commands of a unit with User= only.
constexpr auto kSetWithUser = std::to_array<std::string_view>({"HOME", "USER", "LOGNAME", "SHELL"});

template <class Names>
bool has(const Names& names, std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What the unit defines.
class Definitions {
 public:
  Definitions(const UnitToLint& unit, const ServiceFacts& facts) : has_user_(!facts.user.empty()) {
    for (const auto* setting : unit.settings.list("Service", "Environment"))
      for (const auto& word : parse_quoted_words(setting->value)) names_.insert(word.substr(0, word.find('=')));
    for (const auto* setting : unit.settings.list("Service", "PassEnvironment"))
      for (auto& word : parse_quoted_words(setting->value)) names_.insert(std::move(word));
    for (const auto& file : unit.environment_files) add_file(file.text);
    if (!unit.unread_environment.empty()) unread_ = unit.unread_environment.front();
  }

  [[nodiscard]] bool has_name(std::string_view name) const {
    return names_.contains(std::string(name)) || has(kSetBySystemd, name) || name.starts_with("LC_") ||
           name.starts_with("MONITOR_") || (has_user_ && has(kSetWithUser, name));
  }
  /// A file that may define it, for all that is known; empty: none.
  [[nodiscard]] const std::string& unread() const noexcept { return unread_; }

 private:
  void add_file(std::string_view text) {
    for (const auto line : split(text, '\n')) {
      const auto trimmed = trim(line);
      if (trimmed.empty() || trimmed.front() == '#' || trimmed.front() == ';') continue;
      if (const auto equals = trimmed.find('='); equals != std::string_view::npos)
        names_.insert(std::string(trim(trimmed.substr(0, equals))));
    }
  }

  bool has_user_;
  std::set<std::string> names_;
  std::string unread_;
};

/// "free=..", "read free", "for free in": the script makes it itself.
bool is_set_by_script(const std::string& script, const std::string& name) {
  for (const auto& form : {name + "=", "read " + name, "read -r " + name, "for " + name + " "})
    for (auto at = script.find(form); at != std::string::npos; at = script.find(form, at + 1))
      if (at == 0 ||
          !(is_letter(script[at - 1]) || is_digit(script[at - 1]) || script[at - 1] == '$' || script[at - 1] == '{'))
        return true;
  return false;
}

std::string literal_of(const std::string& written) { return "$" + written; }

constexpr std::string_view kWaitInstead = "; to wait for a GPU use 'vacate wait' in a line of its own";

void report_undefined(const PlacedCommand& placed, const VariableUse& use, const Definitions& defined,
                      UnitFindings& findings) {
  const auto script = shell_script(placed.command);
  const bool by_script = script && is_set_by_script(*script, use.name);
  const bool may_be_elsewhere = !defined.unread().empty() && !by_script;
  std::string reason =
      fmt::format("systemd puts the value of {} here before anything runs", printable(use.written, 60));
  if (by_script)
    reason += "; the script sets a variable of that name, but its shell never sees this one: it sees nothing there";
  else if (may_be_elsewhere)
    reason += fmt::format("; only {}, which could not be read, may define it", printable(defined.unread(), 120));
  else if (has(kSetWithUser, use.name))
    reason += ", and defines it with User= only: nothing is left of it";
  else
    reason += fmt::format(", and the unit does not define it: {}",
                          use.is_word ? "the word vanishes" : "nothing is left of it");
  const std::string fix =
      script
          ? fmt::format("write {} for a variable of the shell{}", printable(literal_of(use.written), 60), kWaitInstead)
          : fmt::format("define it with Environment= or EnvironmentFile=, or write {} for a dollar that stays",
                        printable(literal_of(use.written), 60));
  findings.add(may_be_elsewhere ? UnitSeverity::hint : UnitSeverity::error, *placed.setting,
               {"undefined-variable", reason, fix});
}

/// `${#NAME}`, `$(program)`, `$NAME/file`, `$` alone: forms of a shell, of which systemd knows none.
void report_form(const PlacedCommand& placed, const VariableUse& use, UnitFindings& findings) {
  const auto reason = fmt::format("systemd takes {} for a variable called '{}', which nothing can define: {}",
                                  printable(use.written, 60), printable(use.name, 60),
                                  use.is_word ? "the whole word vanishes" : "nothing is left of it");
  const auto fix = use.is_word && !use.name.empty() && is_letter(use.name.front())
                       ? fmt::format("write ${{NAME}} where more follows the name, or {} for a dollar that stays",
                                     printable(literal_of(use.written), 60))
                       : fmt::format("systemd is no shell; write {} for a dollar that stays, or put it into a script",
                                     printable(literal_of(use.written), 60));
  findings.add(UnitSeverity::error, *placed.setting, {"shell-form", reason, fix});
}

void lint_variables(const PlacedCommand& placed, const Definitions& defined, UnitFindings& findings) {
  const auto& command = placed.command;
  if (command.words.empty()) return;
  if (command.words.front().find('$') != std::string::npos)
    findings.add(UnitSeverity::error, *placed.setting,
                 {"variable-program", "systemd replaces no variable in the path of a program",
                  "write the path out, or run it by /usr/bin/env"});
  if (command.keeps_variables) return;
  static constexpr std::size_t kMostTold = 32;  // of one command
  std::set<std::string> told;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    for (const auto& use : variables_in(command.words[i])) {
      if (told.size() >= kMostTold) return;
      if (!told.insert(use.written).second) continue;
      const auto script = shell_script(command);
      if (!is_variable_name(use.name))
        report_form(placed, use, findings);
      else if (!defined.has_name(use.name) || (script && is_set_by_script(*script, use.name)))
        report_undefined(placed, use, defined, findings);
    }
  }
}

/// Lists and paths in which systemd replaces no variables, and people think that it does.
void lint_settings_without_variables(const UnitSettings& settings, UnitFindings& findings) {
  static constexpr auto kKeys =
      std::to_array<std::string_view>({"Environment", "EnvironmentFile", "WorkingDirectory", "PIDFile", "User"});
  for (const auto& setting : settings.all()) {
    if (setting.section != "Service" || !has(kKeys, setting.key)) continue;
    const std::string_view value = setting.value;
    for (auto at = value.find('$'); at < value.size() && at + 1 < value.size(); at = value.find('$', at + 1)) {
      if (value[at + 1] != '{' && !is_letter(value[at + 1])) continue;
      findings.add(
          UnitSeverity::warning, setting,
          {"variable-not-replaced", fmt::format("systemd replaces no variables in {}=: the dollar stays", setting.key),
           "write the value out, or set it in the file that EnvironmentFile= names"});
      break;
    }
  }
}

/// Measured on 252: the letters and digits that are none make systemd refuse the command or ignore the setting.
constexpr std::string_view kUnknownSpecifiers = "ekxzDFKOQXZ0123456789";

bool is_known_specifier(char c) noexcept {
  return ((is_letter(c) && c != '_') || is_digit(c)) && kUnknownSpecifiers.find(c) == std::string_view::npos;
}

/// Those in which specifiers are replaced and that matter here.
bool takes_specifiers(const UnitSetting& setting) noexcept {
  static constexpr auto kKeys =
      std::to_array<std::string_view>({"Environment", "EnvironmentFile", "WorkingDirectory", "PIDFile", "User"});
  return setting.section == "Service" && (setting.key.starts_with("Exec") || has(kKeys, setting.key)) &&
         setting.key != "ExecPaths" && setting.key != "ExecSearchPath";
}

/// Programs whose own arguments have percent signs: what systemd makes of %s or %H there nobody meant.
bool formats_with_percent(std::string_view before) {
  static constexpr auto kPrograms = std::to_array<std::string_view>({"date", "printf", "awk", "stat", "strftime"});
  return std::any_of(kPrograms.begin(), kPrograms.end(), [&](auto program) {
    const auto at = before.rfind(program);
    if (at == std::string_view::npos) return false;
    const auto end = at + program.size();
    const bool begins = at == 0 || !is_letter(before[at - 1]);
    return begins && (end >= before.size() || !is_letter(before[end])) &&
           before.substr(end).find_first_of(";|&\n") == std::string_view::npos;
  });
}

constexpr std::size_t kLongestFormat = 400;  // from the program's name to the sign

void lint_percent(const UnitSetting& setting, UnitFindings& findings) {
  const std::string_view value = setting.value;
  for (auto at = value.find('%'); at != std::string_view::npos; at = value.find('%', at + 1)) {
    if (at + 1 < value.size() && value[at + 1] == '%') {
      ++at;
      continue;
    }
    const char next = at + 1 < value.size() ? value[at + 1] : ' ';
    const auto written = printable(value.substr(at, 2), 8);
    if ((is_letter(next) && next != '_') || is_digit(next)) {
      if (!is_known_specifier(next))
        return findings.add(
            UnitSeverity::error, setting,
            {"unknown-specifier",
             fmt::format("{} is no specifier: systemd {}", written,
                         setting.key.starts_with("Exec") ? "refuses to start the unit" : "ignores the setting"),
             "write %% for a percent sign"});
      const auto from = at - std::min(at, kLongestFormat);
      if (formats_with_percent(value.substr(from, at - from)))
        return findings.add(
            UnitSeverity::warning, setting,
            {"percent-in-format",
             fmt::format("systemd replaces {} before the program sees it, which is no format any more", written),
             fmt::format("write %{} here", written)});
    } else if (setting.key.starts_with("Exec")) {
      return findings.add(UnitSeverity::hint, setting,
                          {"single-percent", "a single % stays as it is here only because no letter follows",
                           "write %% for a percent sign"});
    }
  }
}

}  // namespace

void lint_words(const UnitToLint& unit, const ServiceFacts& facts, UnitFindings& findings) {
  const Definitions defined(unit, facts);
  for (const auto& placed : facts.commands) lint_variables(placed, defined, findings);
  lint_settings_without_variables(unit.settings, findings);
  for (const auto& setting : unit.settings.all())
    if (takes_specifiers(setting)) lint_percent(setting, findings);
}

}  // namespace vacate
