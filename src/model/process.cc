// SPDX-License-Identifier: Apache-2.0
#include "model/process.h"

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {

std::string to_string(const ProcessKey& key) { return fmt::format("{}@{}", key.pid, key.start_ticks); }

Result<ProcessSelector> parse_process_selector(std::string_view text) {
  const auto at = text.find('@');
  const auto pid = parse_unsigned(text.substr(0, at));
  const auto start = at == std::string_view::npos ? std::nullopt : parse_unsigned(text.substr(at + 1));
  if (!pid || *pid == 0 || *pid > kLargestPid || (at != std::string_view::npos && !start))
    return Error{ErrorCode::malformed,
                 fmt::format("'{}' is not a process; write PID or PID@START", printable(text, 64))};
  return ProcessSelector{static_cast<pid_t>(*pid), start};
}

std::string title_of(const Process& process) {
  std::string title;
  if (process.argv.known()) {
    for (const auto& word : *process.argv) {
      if (!title.empty()) title += ' ';
      title += word;
    }
  }
  return title.empty() ? "[" + process.comm + "]" : title;
}

}  // namespace vacate
