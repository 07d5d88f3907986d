// SPDX-License-Identifier: Apache-2.0
#include "report/why_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"

namespace vacate {

std::string why_title(const Process& process) { return printable(title_of(process), kLongestWhyTitle); }

std::string why_name(const Snapshot& snapshot, pid_t pid) {
  const auto* process = snapshot.find(pid);
  return process != nullptr ? fmt::format("{} ({})", pid, why_title(*process)) : std::to_string(pid);
}

std::string why_pids(const std::vector<pid_t>& pids) {
  std::string list;
  for (const char c : format_ranges({pids.begin(), pids.end()}))
    list += c == ',' ? std::string(", ") : std::string(1, c);
  return list;
}

}  // namespace vacate
