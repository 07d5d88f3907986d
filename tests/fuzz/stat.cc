// SPDX-License-Identifier: Apache-2.0
// /proc/PID/stat: numbers in range, comm taken whole, and what is written again reads the same.
#include <fmt/format.h>

#include "fuzz.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto stat = parse_stat(text);
  if (!stat) return 0;
  require(is_pid_or_zero(stat->pid) && is_pid_or_zero(stat->ppid), "stat: pids are pids");
  require(is_pid_or_zero(stat->pgid) && is_pid_or_zero(stat->sid), "stat: groups and sessions are pids");
  require(stat->threads <= static_cast<unsigned>(kPidLimit), "stat: threads have pids");
  require(contains(text, "(" + stat->comm + ")"), "stat: comm stands in the text");

  const auto again = parse_stat(fmt::format(
      "{} ({}) {} {} {} {} {} -1 {} 0 0 0 0 0 0 0 0 20 0 {} 0 {} 0 0\n", stat->pid, stat->comm, stat->state, stat->ppid,
      stat->pgid, stat->sid, static_cast<std::int32_t>(stat->tty), stat->flags, stat->threads, stat->start_ticks));
  require(again.has_value(), "stat: written again it reads");
  require(again->pid == stat->pid && again->comm == stat->comm && again->state == stat->state &&
              again->ppid == stat->ppid && again->pgid == stat->pgid && again->sid == stat->sid &&
              again->tty == stat->tty && again->flags == stat->flags && again->threads == stat->threads &&
              again->start_ticks == stat->start_ticks,
          "stat: written again it reads the same");
  return 0;
}
