// SPDX-License-Identifier: Apache-2.0
#include "cli/live_lines.h"

#include <unistd.h>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "report/format.h"

namespace vacate {

void LiveLines::on_execution(const ExecutionProgress& progress) {
  std::string line =
      fmt::format("{} of {} still there", progress.alive, counted(progress.total, "process", "processes"));
  if (progress.until_kill)
    line += fmt::format(", KILL in {}", format_seconds(static_cast<double>(progress.until_kill->count()) / 1000));
  draw({line});
}

void LiveLines::on_release(const std::vector<WatchedGpu>& gpus) {
  std::vector<std::string> lines;
  for (const auto& gpu : gpus)
    lines.push_back(fmt::format("GPU {:<2} {:>11} -> {:>11}  {}", gpu.index, format_mib(gpu.before),
                                format_mib(gpu.used), describe(gpu.verdict)));
  draw(lines);
}

void LiveLines::wipe() { draw({}); }

/// Up to the first line drawn last time, then every line anew, then away with what is left below.
void LiveLines::draw(const std::vector<std::string>& lines) {
  if (show_ == Show::nothing || (lines.empty() && drawn_ == 0)) return;
  std::string screen = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  for (const auto& line : lines) screen += "\r\x1b[2K" + elide_end(line, style_.width) + '\n';
  screen += "\x1b[J";
  drawn_ = lines.size();
  if (!write_all(STDERR_FILENO, screen)) show_ = Show::nothing;
}

}  // namespace vacate
