// SPDX-License-Identifier: Apache-2.0
#include "cli/selector_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/narrowing.h"

namespace vacate {
namespace {

using Parse = Result<std::string> (*)(std::string_view);

std::optional<std::string> find_empty_word(std::string_view option, const std::vector<std::string>& words) {
  const bool has_one = std::find(words.begin(), words.end(), "") != words.end();
  return has_one ? std::optional(fmt::format("{}: an empty word in its list", option)) : std::nullopt;
}

/// Control groups and the names of units may have commas, but then they cannot be told from two.
std::optional<std::string> cut_and_parse(std::string_view option, std::vector<std::string>& words, Parse parse) {
  cut_at_commas(words);
  if (auto complaint = find_empty_word(option, words)) return complaint;
  if (parse == nullptr) return std::nullopt;
  for (auto& word : words) {
    auto parsed = parse(word);
    if (!parsed) return parsed.error().message;
    word = std::move(*parsed);
  }
  return std::nullopt;
}

}  // namespace

void add_selector_options(CLI::App& app, SelectorTexts& texts) {
  add_list(app, "--gpu", texts.gpus);
  add_list(app, "--pid", texts.pids);
  add_list(app, "--user", texts.users);
  add_list(app, "--unit", texts.units);
  add_list(app, "--container", texts.containers);
  add_list(app, "--job", texts.jobs);
  add_list(app, "--cgroup", texts.cgroups);
}

std::optional<std::string> parse_pid_list(std::string_view option, std::vector<std::string> words,
                                          std::vector<ProcessSelector>& pids) {
  if (auto complaint = cut_and_parse(option, words, nullptr)) return complaint;
  for (const auto& word : words) {
    const auto selector = parse_process_selector(word);
    if (!selector) return fmt::format("{}: {}", option, selector.error().message);
    pids.push_back(*selector);
  }
  return std::nullopt;
}

std::optional<std::string> parse_unit_list(std::string_view option, std::vector<std::string> words,
                                           std::vector<std::string>& units) {
  if (auto complaint = cut_and_parse(option, words, nullptr)) return complaint;
  for (const auto& word : words) {
    auto unit = parse_unit_word(word);
    if (!unit) {  // the message is about --unit
      const auto& message = unit.error().message;
      return message.starts_with("--unit") ? std::string(option) + message.substr(6) : message;
    }
    units.push_back(std::move(*unit));
  }
  return std::nullopt;
}

std::optional<std::string> parse_selectors(SelectorTexts texts, ParsedSelectors& selectors) {
  auto complaint =
      first_of({cut_and_parse("--gpu", texts.gpus, nullptr), parse_pid_list("--pid", texts.pids, selectors.pids),
                cut_and_parse("--user", texts.users, nullptr), cut_and_parse("--unit", texts.units, parse_unit_word),
                cut_and_parse("--container", texts.containers, parse_container_word),
                cut_and_parse("--job", texts.jobs, parse_job_word),
                cut_and_parse("--cgroup", texts.cgroups, parse_cgroup_word)});
  if (complaint) return complaint;
  selectors.words = {std::move(texts.gpus),       std::move(texts.users), std::move(texts.units),
                     std::move(texts.containers), std::move(texts.jobs),  std::move(texts.cgroups)};
  return std::nullopt;
}

}  // namespace vacate
