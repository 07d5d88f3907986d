// SPDX-License-Identifier: Apache-2.0
// Unit files: whatever bytes they have, findings are lines for people with a place in the file, the same text gives the
// same ones, and the drop-in for such a unit has nothing that systemd replaces.
#include <algorithm>

#include "fuzz.h"
#include "unit/dropin.h"
#include "unit/lint.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

constexpr std::string_view kPath = "/etc/systemd/system/a.service";

void check_findings(const UnitToLint& unit, std::size_t lines) {
  const auto findings = lint_unit(unit);
  for (const auto& finding : findings) {
    require(!finding.code.empty() && is_one_clean_line(finding.code), "unit: a finding has a code");
    require(!finding.reason.empty() && is_one_clean_line(finding.reason), "unit: a reason is one line");
    require(is_one_clean_line(finding.fix), "unit: a fix is one line");
    require(finding.line <= lines, "unit: a finding is in the file");
    require((finding.line == 0) == finding.file.empty(), "unit: a line has a file");
  }
  require(lint_unit(unit).size() == findings.size(), "unit: the same text gives the same findings");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(as_text(data, size));
  UnitToLint unit;
  unit.settings = UnitSettings::parse({{std::string(kPath), text}});
  unit.environment_files = {{"/etc/a.env", text}};
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  check_findings(unit, lines);
  if (const auto name = parse_service_name(text.substr(0, text.find('\n')))) {
    require(parse_service_name(name->full()).has_value(), "unit: a name that is taken is taken again");
    for (const auto& folder : dropin_folders(*name))
      require(folder.find('/') == std::string::npos && folder.ends_with(".service.d"), "unit: a folder is a name");
    const auto dropin = render_dropin({*name, "/usr/bin/vacate", {"0"}, "", std::chrono::minutes(5)}, unit.settings);
    if (dropin) require(dropin->find_first_of("$%\"") == std::string::npos, "unit: nothing that systemd replaces");
  }
  return 0;
}
