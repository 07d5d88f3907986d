// SPDX-License-Identifier: Apache-2.0
// `vacate log`: reads and shows. Nothing is changed.
#include <unistd.h>

#include "app/log.h"
#include "cli/command_parts.h"
#include "cli/terminal.h"

namespace vacate {

int show_log(const LogOptions& options) {
  const LogReport report = read_log({options.since, options.pids, options.plan});
  const std::string text = options.format == OutputFormat::json ? render_log_json(report)
                                                                : render_log_text(report, style_for(STDOUT_FILENO));
  return delivered(text, number_of(exit_code_of(report)));
}

}  // namespace vacate
