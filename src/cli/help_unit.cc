// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view unit_help() noexcept {
  return R"(Usage: vacate unit lint FILE|NAME [OPTION...]
       vacate unit dropin NAME --gpu LIST [OPTION...]

systemd units that start and stop GPU services safely. lint finds what hurts
them, with the line, the reason and the fix; drop-ins are read as systemd reads
them. A FILE has a slash in it. lint ends with 1 if there are errors or
warnings, and with 0 if there are none, whatever the hints

dropin prints a drop-in that waits for free GPUs before the start, ends after
every stop what the service left on them, and sets the timeouts and KillMode
that this needs

Options:
  --json          one JSON object (vacate.unit-lint/1, vacate.unit-dropin/1)
  -h, --help      show this help

Of dropin:
  --gpu LIST      the GPUs of the service: index, GPU- UUID, PCI bus id, all
  --timeout TIME  how long a start may wait for them (5min); 0: for ever
  --install       write it to /etc/systemd/system/NAME.d/vacate.conf and have
                  the service manager read it; a file of somebody else stays

Examples:
  vacate unit lint llm
  sudo vacate unit dropin llm --gpu 0,1 --install
)";
}

}  // namespace vacate
