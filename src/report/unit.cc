// SPDX-License-Identifier: Apache-2.0
#include "report/unit.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/format.h"
#include "report/json_parts.h"

namespace vacate {
namespace {

Paint paint_for(UnitSeverity severity) {
  return severity == UnitSeverity::error     ? Paint::bad
         : severity == UnitSeverity::warning ? Paint::doubtful
                                             : Paint::faint;
}

std::size_t count_of(const UnitLint& lint, UnitSeverity severity) {
  return static_cast<std::size_t>(std::count_if(lint.findings.begin(), lint.findings.end(),
                                                [&](const UnitFinding& found) { return found.severity == severity; }));
}

std::string render_finding(const UnitLint& lint, const UnitFinding& found, const RenderStyle& style) {
  const std::string place =
      found.line != 0 ? fmt::format("{}:{}", printable(found.file), found.line) : printable(lint.unit);
  std::string text =
      fmt::format("{}: {}: {}{}\n", place, painted(describe(found.severity), paint_for(found.severity), style),
                  found.code, found.key.empty() ? "" : " (" + printable(found.key, 64) + "=)");
  text += wrap(printable(found.reason), 2, style.width);
  if (!found.fix.empty()) text += wrap("fix: " + printable(found.fix), 2, style.width);
  return text;
}

}  // namespace

std::string render_unit_lint_text(const UnitLint& lint, const RenderStyle& style) {
  std::string text;
  for (const auto& found : lint.findings) text += render_finding(lint, found, style);
  for (const auto& line : lint.unread) text += wrap("not read: " + printable(line), 0, style.width);
  if (!lint.masked_by.empty())
    return text + wrap(fmt::format("{} is masked by {}: systemd refuses to start it, and there is nothing to check",
                                   printable(lint.unit), printable(lint.masked_by)),
                       0, style.width);
  return text + wrap(fmt::format("{}: {}, {}, {} in {}", printable(lint.unit),
                                 counted(count_of(lint, UnitSeverity::error), "error", "errors"),
                                 counted(count_of(lint, UnitSeverity::warning), "warning", "warnings"),
                                 counted(count_of(lint, UnitSeverity::hint), "hint", "hints"),
                                 counted(lint.files.size(), "file", "files")),
                     0, style.width);
}

std::string render_unit_lint_json(const UnitLint& lint) {
  using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer
  Json object;
  object["schema"] = "vacate.unit-lint/1";
  object["exit"] = static_cast<int>(exit_code_of(lint));
  object["unit"] = safe(lint.unit);
  object["files"] = texts(lint.files);
  object["masked_by"] = lint.masked_by.empty() ? Json(nullptr) : safe(lint.masked_by);
  object["findings"] = list_of(lint.findings, [](const UnitFinding& found) {
    Json entry;
    entry["severity"] = describe(found.severity);
    entry["code"] = safe(found.code);
    entry["file"] = found.line == 0 ? Json(nullptr) : safe(found.file);
    entry["line"] = found.line == 0 ? Json(nullptr) : Json(found.line);
    entry["key"] = found.key.empty() ? Json(nullptr) : safe(found.key);
    entry["reason"] = safe(found.reason);
    entry["fix"] = safe(found.fix);
    return entry;
  });
  object["unread"] = texts(lint.unread);
  return one_line(object);
}

std::string render_unit_dropin_json(const UnitDropin& dropin) {
  using namespace json;  // NOLINT(google-build-using-namespace): the parts of one writer
  Json object;
  object["schema"] = "vacate.unit-dropin/1";
  object["unit"] = safe(dropin.unit);
  object["path"] = safe(dropin.path);
  object["text"] = dropin.text;
  object["installed"] = dropin.installed;
  object["reloaded"] = dropin.reloaded;
  object["notes"] = texts(dropin.notes);
  return one_line(object);
}

}  // namespace vacate
