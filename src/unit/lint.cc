// SPDX-License-Identifier: Apache-2.0
#include "unit/lint.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "unit/lint_parts.h"

namespace vacate {
namespace {

/// Lines of commands that systemd refuses as a whole.
void lint_quotes(const UnitSettings& settings, UnitFindings& findings) {
  for (const auto& setting : settings.all()) {
    if (setting.section != "Service" || !setting.key.starts_with("Exec") || setting.key == "ExecPaths" ||
        setting.key == "ExecSearchPath")
      continue;
    if (const auto flaw = parse_command_line(setting.value).flaw)
      findings.add(
          UnitSeverity::error, setting,
          {"bad-command", fmt::format("{}: systemd ignores this line", *flaw), "close the quote, name a program"});
  }
}

/// By the order in which systemd reads the files; what is about the unit as a whole comes last.
void sort_by_place(const UnitSettings& settings, std::vector<UnitFinding>& findings) {
  std::map<std::string, std::size_t> ranks;
  for (const auto& setting : settings.all()) ranks.emplace(setting.file, ranks.size());
  for (const auto& flaw : settings.flaws()) ranks.emplace(flaw.file, ranks.size());
  const auto rank = [&](const UnitFinding& finding) {
    const auto found = ranks.find(finding.file);
    return std::pair(found == ranks.end() ? ranks.size() : found->second, finding.line);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const UnitFinding& a, const UnitFinding& b) { return rank(a) < rank(b); });
}

}  // namespace

void UnitFindings::add(UnitSeverity severity, const UnitSetting& at, Words words) {
  found_.push_back(
      {severity, std::string(words.code), at.file, at.line, at.key, std::move(words.reason), std::move(words.fix)});
}

void UnitFindings::add_missing(UnitSeverity severity, std::string_view key, Words words) {
  found_.push_back(
      {severity, std::string(words.code), "", 0, std::string(key), std::move(words.reason), std::move(words.fix)});
}

void UnitFindings::add_flaw(const UnitFlaw& flaw) {
  found_.push_back(
      {UnitSeverity::warning, "ignored-line", flaw.file, flaw.line, "", flaw.what, "correct or remove it"});
}

std::vector<std::string> environment_files_of(const UnitSettings& settings) {
  std::vector<std::string> paths;
  for (const auto* setting : settings.list("Service", "EnvironmentFile"))
    paths.push_back(setting->value.starts_with('-') ? setting->value.substr(1) : setting->value);
  return paths;
}

std::vector<UnitFinding> lint_unit(const UnitToLint& unit) {
  UnitFindings findings;
  const ServiceFacts facts = service_facts(unit.settings, unit.prefix);
  for (const auto& flaw : unit.settings.flaws()) findings.add_flaw(flaw);
  lint_quotes(unit.settings, findings);
  lint_words(unit, facts, findings);
  lint_commands(facts, findings);
  lint_service(unit, facts, findings);
  auto found = std::move(findings).take();
  sort_by_place(unit.settings, found);
  return found;
}

}  // namespace vacate
