// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_unit.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/option_words.h"

namespace vacate {
namespace {

/// Option values as they were written.
struct UnitWords {
  bool help = false, json = false, install = false;
  std::vector<std::string> gpus, operands;
  std::optional<std::string> timeout;
};

void add_unit_lint(CLI::App& app, UnitWords& words) {
  add_help(app, words.help);
  add_switch(app, "--json", words.json);
  app.add_option("SUBJECT", words.operands)->expected(0, -1);
}

void add_unit_dropin(CLI::App& app, UnitWords& words) {
  add_unit_lint(app, words);
  add_list(app, "--gpu", words.gpus);
  add_value(app, "--timeout", words.timeout);
  add_switch(app, "--install", words.install);
}

std::optional<std::string> check_operands(const UnitWords& words, std::string_view verb, std::string_view what) {
  if (words.operands.empty() || words.operands.front().empty()) return fmt::format("unit {}: name {}", verb, what);
  if (words.operands.size() > 1) return fmt::format("unexpected argument '{}'", printable(words.operands[1], 64));
  return std::nullopt;
}

std::optional<std::string> check_gpus(const UnitWords& words) {
  if (words.gpus.empty()) return "unit dropin: name the GPUs that the service uses: --gpu 0,1 or --gpu all";
  if (std::find(words.gpus.begin(), words.gpus.end(), "") != words.gpus.end())
    return "--gpu: an empty word in its list";
  return std::nullopt;
}

std::variant<Options, UsageError> parse_lint(const std::vector<std::string>& arguments) {
  UnitWords words;
  CLI::App app;
  add_unit_lint(app, words);
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(unit_help())});
  if (!complaint) complaint = check_operands(words, "lint", "a unit, or a file with a slash in its path");
  if (complaint) return UsageError{*complaint, "vacate unit --help"};
  return Options(UnitLintOptions{words.json ? OutputFormat::json : OutputFormat::text, words.operands.front()});
}

std::variant<Options, UsageError> parse_dropin(const std::vector<std::string>& arguments) {
  UnitWords words;
  CLI::App app;
  add_unit_dropin(app, words);
  UnitDropinOptions options;
  auto complaint = parse_words(app, arguments);
  if (!complaint && words.help) return Options(ShowText{std::string(unit_help())});
  cut_at_commas(words.gpus);
  if (!complaint)
    complaint = first_of({check_operands(words, "dropin", "a service"), check_gpus(words),
                          parse_time("--timeout", words.timeout, options.wait)});
  if (complaint) return UsageError{*complaint, "vacate unit --help"};
  options.format = words.json ? OutputFormat::json : OutputFormat::text;
  options.unit = words.operands.front();
  options.gpus = std::move(words.gpus);
  options.install = words.install;
  return Options(std::move(options));
}

}  // namespace

std::variant<Options, UsageError> parse_unit(const std::vector<std::string>& arguments) {
  static const std::vector<std::string> kVerbs = {"lint", "dropin"};
  const std::string verb = arguments.empty() ? "" : arguments.front();
  if (verb == "--help" || verb == "-h") return Options(ShowText{std::string(unit_help())});
  if (verb.empty() || verb.starts_with('-'))
    return UsageError{"unit: say lint or dropin, then the unit", "vacate unit --help"};
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (verb == "lint") return parse_lint(rest);
  if (verb == "dropin") return parse_dropin(rest);
  return UsageError{fmt::format("unit: unknown command '{}'{}", printable(verb, 64), suggestion(verb, kVerbs)),
                    "vacate unit --help"};
}

std::vector<std::string> unit_option_names() {
  UnitWords words;
  CLI::App app;
  add_unit_dropin(app, words);
  return names_of(app);
}

}  // namespace vacate
