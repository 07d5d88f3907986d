// SPDX-License-Identifier: Apache-2.0
// The record's lines: vacate.record/1, one JSON object a line (docs/record.md). Pure. What a process or file chose is
// made printable on the way in, so that no line of the file ever obeys a terminal; the reader still trusts nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/action_entry.h"

namespace vacate {

/// More is no line of ours: 64 KiB.
inline constexpr std::size_t kLongestActionLine = std::size_t{64} << 10U;

/// Valid UTF-8 and one line, without its line feed. Long texts are cut.
[[nodiscard]] std::string action_line(const ActionEntry& entry);

/// Nothing: it is no whole line of ours. Keys that are not known are passed over: a later vacate may add some.
[[nodiscard]] std::optional<ActionEntry> parse_action_line(std::string_view line);

/// "TERM to 4711@156405 (python train.py): done": an entry in one line, for the journal.
[[nodiscard]] std::string action_sentence(const ActionEntry& entry);

}  // namespace vacate
