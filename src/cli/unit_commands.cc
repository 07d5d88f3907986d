// SPDX-License-Identifier: Apache-2.0
// `vacate unit`: prints, and complains.
#include <unistd.h>

#include <fmt/format.h>

#include "app/unit.h"
#include "base/text.h"
#include "cli/command_parts.h"
#include "cli/terminal.h"
#include "report/unit.h"

namespace vacate {

int run_unit_lint(const UnitLintOptions& options) {
  const auto lint = lint_unit_of(options.subject);
  if (!lint) return complain_about(lint.error());
  return delivered(options.format == OutputFormat::json ? render_unit_lint_json(*lint)
                                                        : render_unit_lint_text(*lint, style_for(STDOUT_FILENO)),
                   number_of(exit_code_of(*lint)));
}

int run_unit_dropin(const UnitDropinOptions& options) {
  auto driver = DriverSession::start();
  if (!driver) return complain_about(driver.error());
  const auto made = make_dropin({options.unit, options.gpus, options.wait, options.install}, *driver);
  if (!made) return complain_about(made.error());
  if (options.format == OutputFormat::json) return delivered(render_unit_dropin_json(*made), number_of(ExitCode::done));
  for (const auto& note : made->notes) complain(printable(note));
  if (!made->installed) return delivered(made->text, number_of(ExitCode::done));
  return delivered(
      fmt::format("{} is written{}\n", made->path, made->reloaded ? " and read by the service manager" : ""),
      number_of(ExitCode::done));
}

}  // namespace vacate
