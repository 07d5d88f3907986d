// SPDX-License-Identifier: Apache-2.0
// A line of the record, which anybody may have written to the journal: what is taken is written again as clean lines
// that read the same, and `vacate log` shows it without obeying it.
#include "report/action_line.h"
#include "fuzz.h"
#include "report/log.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entry = parse_action_line(as_text(data, size));
  if (!entry) return 0;
  require(is_one_clean_line(action_sentence(*entry)), "action: its sentence is one line");
  const std::string line = action_line(*entry);
  require(is_one_clean_line(line), "action: its line is one line");
  require(line.size() <= kLongestActionLine, "action: its line is short enough to be read");
  const auto again = parse_action_line(line);
  require(again && again->number == entry->number && again->author.uid == entry->author.uid && again->pid == entry->pid,
          "action: its line is read again");
  LogReport report{{{"journal", LogSource::State::read, "", 1, 0}}, join_entries({{*entry, "journal"}})};
  const std::string text = render_log_text(report, {});
  for (const auto piece : split(text, '\n')) require(is_one_clean_line(piece), "action: what is shown is clean");
  const std::string shown = render_log_json(report);
  require(is_one_clean_line(shown.substr(0, shown.size() - 1)), "action: as JSON as well");
  return 0;
}
