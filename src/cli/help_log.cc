// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view log_help() noexcept {
  return R"(Usage: vacate log [OPTION...]

What vacate did on this machine, newest last: every signal, stop and removal,
when, by whom, on what evidence and what came of it. Read from the journal and
from /var/log/vacate.jsonl. 'not known' is an action that was announced and
never answered for

Options:
  --since TIME  only of the last so long: 30min, 12h
  --pid LIST    only what was done to these: PID or PID@START
  --plan ID     only of this plan: its id or the beginning of it
  --json        one JSON object (vacate.log/1)
  -h, --help    show this help

Examples:
  vacate log --since 1h
  sudo vacate log --json | jq '.actions[] | select(.result != "done")'

Exit codes: 0 done, 2 usage, 4 part of the record could not be read
)";
}

}  // namespace vacate
