// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_shm.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attribute/shm_catalogue.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct ShmWords {
  bool help = false, json = false, yes = false, dry_run = false, sysv = false, assume_private = false;
  std::vector<std::string> families, paths;
  std::optional<std::string> older_than, scan;
};

void add_shm_list(CLI::App& app, ShmWords& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  add_list(app, "--path", words.paths);
  add_value(app, "--scan", words.scan);
}

void add_shm_clean(CLI::App& app, ShmWords& words) {
  add_shm_list(app, words);
  add_switch(app, "--yes", words.yes);
  add_switch(app, "--dry-run", words.dry_run);
  add_switch(app, "--sysv", words.sysv);
  add_switch(app, "--assume-private", words.assume_private);
  add_list(app, "--family", words.families);
  add_value(app, "--older-than", words.older_than);
}

/// An option of `clean` given to a mere list.
std::optional<std::string> find_option_of_clean(const std::vector<std::string>& arguments) {
  ShmWords words;
  CLI::App list;
  CLI::App clean;
  add_shm_list(list, words);
  add_shm_clean(clean, words);
  const auto names = names_of(clean);
  for (const auto& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
    if (is_known && list.get_option_no_throw(name) == nullptr)
      return fmt::format("{} belongs to 'vacate shm clean'", name);
  }
  return std::nullopt;
}

std::optional<std::string> check_families(const std::vector<std::string>& families) {
  static const std::vector<std::string> kKnown = shm_families();
  for (const auto& family : families) {
    if (std::find(kKnown.begin(), kKnown.end(), family) != kKnown.end()) continue;
    const auto nearest = suggestion(family, kKnown);
    return fmt::format("--family: no family is called '{}'{}{} {}", printable(family, 64), nearest,
                       nearest.empty() ? "; there are" : " There are", fmt::join(kKnown, ", "));
  }
  return std::nullopt;
}

std::optional<std::string> check_paths(const std::vector<std::string>& paths) {
  for (const auto& path : paths)
    if (path.empty() || path.front() != '/')
      return fmt::format("--path: '{}' is no absolute path", printable(path, 64));
  return std::nullopt;
}

}  // namespace

std::variant<Options, UsageError> parse_shm(const std::vector<std::string>& arguments) {
  static const std::vector<std::string> kVerbs = {"list", "clean"};
  const bool has_verb = !arguments.empty() && !arguments.front().starts_with('-');
  const std::string verb = has_verb ? arguments.front() : "list";
  if (std::find(kVerbs.begin(), kVerbs.end(), verb) == kVerbs.end())
    return UsageError{fmt::format("shm: unknown command '{}'{}", printable(verb, 64), suggestion(verb, kVerbs)),
                      "vacate shm --help"};
  ShmOptions options;
  options.clean = verb == "clean";
  ShmWords words;
  CLI::App app;
  if (options.clean)
    add_shm_clean(app, words);
  else
    add_shm_list(app, words);
  auto complaint = options.clean ? std::nullopt : find_option_of_clean(arguments);
  if (!complaint) complaint = parse_words(app, {arguments.begin() + (has_verb ? 1 : 0), arguments.end()});
  if (!complaint && words.help) return Options(ShowText{std::string(shm_help())});
  cut_at_commas(words.families);
  if (!complaint && words.yes && words.dry_run) complaint = "--yes and --dry-run contradict each other";
  if (!complaint)
    complaint = first_of({check_families(words.families), check_paths(words.paths),
                          parse_time("--older-than", words.older_than, options.request.older_than),
                          parse_scan(words.scan, options.request.scan)});
  if (complaint) return UsageError{*complaint, "vacate shm --help"};
  options.request.families = std::move(words.families);
  options.request.paths = std::move(words.paths);
  options.request.sysv = words.sysv;
  options.request.assume_private = words.assume_private;
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.mode = words.dry_run ? Mode::dry_run : words.yes ? Mode::yes : Mode::ask;
  return Options(std::move(options));
}

std::vector<std::string> shm_option_names() {
  ShmWords words;
  CLI::App app;
  add_shm_clean(app, words);
  return names_of(app);
}

}  // namespace vacate
