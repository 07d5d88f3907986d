// SPDX-License-Identifier: Apache-2.0
#include "cli/option_words.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {

namespace {

/// What CLI11 did not understand, in our words.
std::string explain_extra(const std::string& extra, const CLI::App& app) {
  if (!extra.starts_with('-')) return fmt::format("unexpected argument '{}'", printable(extra, 64));
  const std::string name = extra.substr(0, extra.find('='));
  return fmt::format("unknown option '{}'{}", printable(name, 64), suggestion(name, names_of(app)));
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
std::optional<std::string> parse_words(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> words = with_values_attached(arguments);
    std::reverse(words.begin(), words.end());
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return printable(error.what(), 200);
  }
  if (const auto extras = app.remaining(); !extras.empty()) return explain_extra(extras.front(), app);
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

std::optional<std::string> first_of(std::initializer_list<std::optional<std::string>> complaints) {
  for (const auto& complaint : complaints)
    if (complaint) return complaint;
  return std::nullopt;
}

}  // namespace vacate
