// SPDX-License-Identifier: Apache-2.0
#include "cli/option_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {

namespace {

/// What CLI11 did not understand, in our words.
std::string explain_extra(const std::string& extra, const std::vector<std::string>& names) {
  if (!extra.starts_with('-')) return fmt::format("unexpected argument '{}'", printable(extra, 64));
  const std::string name = extra.substr(0, extra.find('='));
  return fmt::format("unknown option '{}'{}", printable(name, 64), suggestion(name, names));
}

/// Options that want a value, and what it looks like.
constexpr auto kValues = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"--gpu", "a list, e.g. 0,1"},
     {"--pid", "a list, e.g. 4711 or 4711@156405"},
     {"--even", "a list, e.g. 4711"},
     {"--user", "a list, e.g. alice,1000"},
     {"--unit", "a list, e.g. llm.service"},
     {"--container", "a list, e.g. the first 12 digits of an id"},
     {"--job", "a list, e.g. 17"},
     {"--cgroup", "a list, e.g. /system.slice"},
     {"--grace", "a time, e.g. 30s"},
     {"--timeout", "a time, e.g. 2min"},
     {"--older-than", "a time, e.g. 1h"},
     {"--since", "a time, e.g. 12h"},
     {"--for", "a time, e.g. 5s"},
     {"--used-below", "a size or a share, e.g. 8GiB or 10%"},
     {"--free", "a size or a share, e.g. 90GiB or 50%"},
     {"--ignore-pid", "a list, e.g. 4711 or 4711@156405"},
     {"--ignore-unit", "a list, e.g. llm.service"},
     {"--family", "a list, e.g. nccl,python"},
     {"--path", "a directory, e.g. /mnt/shm"},
     {"--policy", "the name of a file"},
     {"--plan", "the name of a file, or for log an id"},
     {"--replay", "the name of a file"},
     {"--scan", "auto, procfs or bpf"}});

const auto* value_of(std::string_view name) {
  return std::find_if(kValues.begin(), kValues.end(), [&](const auto& each) { return each.first == name; });
}

bool is_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

/// An option without its value: CLI11 would take the next option for it.
std::optional<std::string> find_missing_value(const CLI::App& app, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    const bool is_cut = name.ends_with('=');  // "--policy="
    if (is_cut) name.pop_back();
    const bool is_followed = !is_cut && i + 1 < words.size() && !is_option(words[i + 1]);
    if (const auto* value = value_of(name);
        value != kValues.end() && !is_followed && app.get_option_no_throw(name) != nullptr)
      return fmt::format("{} needs {}", value->first, value->second);
  }
  return std::nullopt;
}

/// "--yes=1", for a switch.
std::string explain_mismatch(const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (is_option(word) && name != word && value_of(name) == kValues.end())
      return fmt::format("{} takes no value", printable(name, 64));
  }
  return "an option has no value, or one too many";
}

/// "--grace -1s" as "--grace=-1s": a word that starts like an option is a value all the same if a digit follows.
std::vector<std::string> with_values_attached(const std::vector<std::string>& arguments) {
  std::vector<std::string> attached;
  for (const auto& word : arguments) {
    const bool is_number = word.size() > 1 && word[0] == '-' && word[1] >= '0' && word[1] <= '9';
    const bool follows_name =
        !attached.empty() && attached.back().starts_with("--") && attached.back().find('=') == std::string::npos;
    if (is_number && follows_name)
      attached.back() += "=" + word;
    else
      attached.push_back(word);
  }
  return attached;
}

}  // namespace

void add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values) {
  app.add_option(name, values)->allow_extra_args(false);
}

void add_help(CLI::App& app, bool& help) {
  app.set_help_flag();
  app.allow_extras();
  add_switch(app, "-h,--help", help);
}

void add_value(CLI::App& app, const std::string& name, std::optional<std::string>& value) {
  app.add_option(name, value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void add_switch(CLI::App& app, const std::string& name, bool& value) {
  app.add_flag(name, value)->disable_flag_override()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const auto best = closest_match(word, candidates);
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

/// Every piece between commas; empty ones stay, to be complained about.
void cut_at_commas(std::vector<std::string>& words) {
  std::vector<std::string> pieces;
  for (const auto& word : words)
    for (const auto piece : split(word, ',')) pieces.emplace_back(trim(piece));
  words = std::move(pieces);
}

/// Nothing, or what is wrong. CLI11 takes the arguments last first.
std::optional<std::string> parse_words(CLI::App& app, const std::vector<std::string>& arguments,
                                       const std::vector<std::string>& beside) {
  std::vector<std::string> words = with_values_attached(arguments);
  if (auto complaint = find_missing_value(app, words)) return complaint;
  try {
    std::reverse(words.begin(), words.end());
    app.parse(words);
  } catch (const CLI::ArgumentMismatch&) {
    return explain_mismatch(arguments);
  } catch (const CLI::ParseError& error) {
    return printable(error.what(), 200);
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    auto names = names_of(app);
    names.insert(names.end(), beside.begin(), beside.end());
    return explain_extra(extras.front(), names);
  }
  return std::nullopt;
}

std::optional<std::string> parse_time(std::string_view option, const std::optional<std::string>& word,
                                      std::chrono::milliseconds& time) {
  if (!word) return std::nullopt;
  const auto duration = parse_duration(*word);
  if (!duration) return fmt::format("{}: {}", option, duration.error().message);
  time = *duration;
  return std::nullopt;
}

std::optional<std::string> parse_scan(const std::optional<std::string>& word, ScanMethod& method) {
  if (!word) return std::nullopt;
  if (*word == "auto")
    method = ScanMethod::automatic;
  else if (*word == "procfs")
    method = ScanMethod::procfs;
  else if (*word == "bpf")
    method = ScanMethod::bpf;
  else
    return fmt::format("--scan: '{}' is none of auto, procfs and bpf", printable(*word, 64));
  return std::nullopt;
}

std::optional<std::string> first_of(std::initializer_list<std::optional<std::string>> complaints) {
  for (const auto& complaint : complaints)
    if (complaint) return complaint;
  return std::nullopt;
}

}  // namespace vacate
