// SPDX-License-Identifier: Apache-2.0
#include "unit/service_facts.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

constexpr auto kStartKeys =
    std::to_array<std::string_view>({"ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost"});
constexpr auto kStopKeys = std::to_array<std::string_view>({"ExecStop", "ExecStopPost"});

template <class Keys>
bool is_one_of(std::string_view word, const Keys& keys) noexcept {
  return std::find(keys.begin(), keys.end(), word) != keys.end();
}

bool is_true(std::string_view word) noexcept {
  static constexpr auto kTrue = std::to_array<std::string_view>({"1", "yes", "y", "true", "t", "on"});
  return is_one_of(word, kTrue);
}

struct TimeWord {
  std::string_view name;
  double milliseconds;
};
constexpr auto kTimeWords = std::to_array<TimeWord>(
    {{"us", 1e-3},     {"usec", 1e-3},   {"ms", 1},         {"msec", 1},       {"s", 1e3},      {"sec", 1e3},
     {"second", 1e3},  {"seconds", 1e3}, {"m", 6e4},        {"min", 6e4},      {"minute", 6e4}, {"minutes", 6e4},
     {"h", 3.6e6},     {"hr", 3.6e6},    {"hour", 3.6e6},   {"hours", 3.6e6},  {"d", 8.64e7},   {"day", 8.64e7},
     {"days", 8.64e7}, {"w", 6.048e8},   {"week", 6.048e8}, {"weeks", 6.048e8}});
constexpr double kLongestMilliseconds = 1e15;  // thirty thousand years

std::optional<double> weight_of(std::string_view word) noexcept {
  if (word.empty()) return 1e3;
  const auto* found = std::find_if(kTimeWords.begin(), kTimeWords.end(), [&](const auto& w) { return w.name == word; });
  return found == kTimeWords.end() ? std::nullopt : std::optional(found->milliseconds);
}

std::string value_of(const UnitSettings& settings, std::string_view key, std::string_view otherwise) {
  const auto* setting = settings.last("Service", key);
  return setting != nullptr ? setting->value : std::string(otherwise);
}

/// A timeout as set by its own key or by TimeoutSec=, the later one counts.
std::optional<milliseconds> timeout_of(const UnitSettings& settings, std::string_view key) {
  std::optional<milliseconds> found;
  for (const auto& setting : settings.all())
    if (setting.section == "Service" && (setting.key == key || setting.key == "TimeoutSec"))
      if (const auto span = parse_time_span(setting.value)) found = *span;
  if (found && found->count() == 0) return milliseconds::max();  // "0" has always meant for ever
  return found;
}

std::string type_of(const UnitSettings& settings) {
  const bool has_start = !settings.list("Service", "ExecStart").empty();
  const bool on_bus = settings.last("Service", "BusName") != nullptr;
  return value_of(settings, "Type", !has_start ? "oneshot" : on_bus ? "dbus" : "simple");
}

bool mentions_gpus(const UnitSettings& settings) {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"vacate", "nvidia", "cuda", "gpu", "tensor-parallel", "vllm", "/dev/kfd"});
  return std::any_of(settings.all().begin(), settings.all().end(), [](const UnitSetting& setting) {
    if (setting.section != "Service") return false;
    std::string text = setting.value;
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return std::any_of(kWords.begin(), kWords.end(), [&](auto word) { return text.find(word) != std::string::npos; });
  });
}

/// Is it a name of an account that systemd takes, or a number? Specifiers are neither.
bool is_account(std::string_view word) noexcept {
  constexpr std::size_t kLongest = 31;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (word.empty() || word.size() > kLongest) return false;
  if (std::all_of(word.begin(), word.end(), is_digit)) return true;
  return is_letter(word[0]) && std::all_of(word.begin(), word.end(),
                                           [&](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.'; });
}

/// A dynamic user without a name is called as the unit is, where that can be a name, and else by a hash of it.
void add_user(const UnitSettings& settings, std::string_view prefix, ServiceFacts& facts) {
  const bool is_dynamic = is_true(value_of(settings, "DynamicUser", "no"));
  facts.user = value_of(settings, "User", is_dynamic ? prefix : "");
  if (facts.is_of_root() && !is_dynamic) return;
  const bool by_hash = is_dynamic && (facts.user.find('.') != std::string::npos || parse_unsigned(facts.user));
  if (is_account(facts.user) && !by_hash && !facts.is_of_root()) facts.account = facts.user;
  if (is_dynamic && (by_hash || facts.user.empty())) facts.user = "a dynamic user";
}

void add_commands(const UnitSettings& settings, std::string_view key, std::vector<PlacedCommand>& commands) {
  for (const auto* setting : settings.list("Service", key))
    for (auto& command : parse_command_line(setting->value).commands) commands.push_back({setting, std::move(command)});
}

}  // namespace

std::optional<milliseconds> parse_time_span(std::string_view text) {
  text = trim(text);
  if (text == "infinity") return milliseconds::max();
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    double number = 0;
    double place = 0;
    std::size_t at = 0;
    for (; at < text.size() && ((text[at] >= '0' && text[at] <= '9') || (text[at] == '.' && place == 0)); ++at) {
      if (text[at] == '.') {
        place = 1;
      } else if (place == 0) {
        number = number * 10 + (text[at] - '0');
      } else {
        place /= 10;
        number += place * (text[at] - '0');
      }
    }
    if (at == 0 || text.substr(0, at) == ".") return std::nullopt;
    text = trim(text.substr(at));
    const auto end = std::min(text.find_first_of("0123456789 \t"), text.size());
    const auto weight = weight_of(text.substr(0, end));
    if (!weight) return std::nullopt;
    sum += number * *weight;
    text = trim(text.substr(end));
  }
  return sum >= kLongestMilliseconds ? milliseconds::max() : milliseconds(static_cast<milliseconds::rep>(sum));
}

std::string time_span_text(milliseconds span) {
  if (span == milliseconds::max()) return "infinity";
  const auto count = span.count();
  if (count % 1000 != 0) return fmt::format("{}ms", count);
  if (count != 0 && count % 3'600'000 == 0) return fmt::format("{}h", count / 3'600'000);
  if (count != 0 && count % 60'000 == 0) return fmt::format("{}min", count / 60'000);
  return fmt::format("{}s", count / 1000);
}

bool PlacedCommand::is_of_start() const noexcept { return is_one_of(setting->key, kStartKeys); }
bool PlacedCommand::is_of_stop() const noexcept { return is_one_of(setting->key, kStopKeys); }

ServiceFacts service_facts(const UnitSettings& settings, std::string_view prefix) {
  static constexpr milliseconds kDefaultTimeout{90'000};
  ServiceFacts facts;
  for (const auto key : kStartKeys) add_commands(settings, key, facts.commands);
  add_commands(settings, "ExecReload", facts.commands);
  for (const auto key : kStopKeys) add_commands(settings, key, facts.commands);
  facts.type = type_of(settings);
  facts.kill_mode = value_of(settings, "KillMode", "control-group");
  facts.notify_access = value_of(settings, "NotifyAccess", facts.type.starts_with("notify") ? "main" : "none");
  // 252: a notifying type without access is given that of the main process.
  if (facts.notify_access == "none" && facts.type.starts_with("notify")) facts.notify_access = "main";
  facts.restart = value_of(settings, "Restart", "no");
  add_user(settings, prefix, facts);
  facts.has_remain_after_exit = is_true(value_of(settings, "RemainAfterExit", "no"));
  const auto delegate = value_of(settings, "Delegate", "no");
  facts.delegates = is_true(delegate) || delegate.find_first_of("cpim") != std::string::npos;
  if (delegate == "no" || delegate == "off" || delegate == "false") facts.delegates = false;
  const auto start = timeout_of(settings, "TimeoutStartSec");
  const auto stop = timeout_of(settings, "TimeoutStopSec");
  facts.sets_start_timeout = start.has_value();
  facts.sets_stop_timeout = stop.has_value();
  facts.start_timeout = start.value_or(facts.type == "oneshot" ? milliseconds::max() : kDefaultTimeout);
  facts.stop_timeout = stop.value_or(kDefaultTimeout);
  facts.mentions_gpus = mentions_gpus(settings);
  return facts;
}

std::optional<std::vector<std::string>> vacate_arguments(const UnitCommand& command) {
  static constexpr auto kRunners = std::to_array<std::string_view>(
      {"env", "nice", "ionice", "timeout", "setsid", "nohup", "sudo", "stdbuf", "chrt"});
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  if (command.words.empty()) return std::nullopt;
  const bool is_run = is_one_of(command.program(), kRunners);
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    if (base(command.words[i]) == "vacate") {
      using Offset = std::vector<std::string>::difference_type;
      return std::vector<std::string>(command.words.begin() + static_cast<Offset>(i) + 1, command.words.end());
    }
    if (!is_run) break;
  }
  return std::nullopt;
}

std::optional<std::string> option_value(const std::vector<std::string>& arguments, std::string_view name) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--") break;
    if (word == name && i + 1 < arguments.size()) value = arguments[i + 1];
    if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) value = word.substr(name.size() + 1);
  }
  return value;
}

std::optional<std::string> shell_script(const UnitCommand& command) {
  static constexpr auto kShells = std::to_array<std::string_view>({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"});
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  bool in_shell = false;
  const std::size_t farthest = std::min<std::size_t>(command.words.size(), 16);
  for (std::size_t i = 0; i < farthest; ++i) {
    const std::string_view word = command.words[i];
    if (!in_shell) {
      in_shell = is_one_of(base(word), kShells);
    } else if (word.size() > 1 && word[0] == '-' && word[1] != '-' && word.back() == 'c') {
      return i + 1 < command.words.size() ? std::optional(command.words[i + 1]) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace vacate
