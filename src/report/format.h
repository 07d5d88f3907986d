// SPDX-License-Identifier: Apache-2.0
// Figures, times and lists as people read them, and the padding of columns. Pure; every text given to these is
// printable() already, and what they return fits on one line unless it says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "model/action_record.h"
#include "report/render_style.h"

namespace vacate {

/// "96,619": thousands as nvidia-smi does not, MiB as it does (rounded down).
[[nodiscard]] std::string with_thousands(std::uint64_t number);
/// "96,619 MiB", or "unknown" with the reason in brackets.
[[nodiscard]] std::string format_mib(Bytes amount);
[[nodiscard]] std::string format_mib(const Reading<Bytes>& amount);
/// "42s", "17min", "5h12", "12d": at most five columns until a hundred years have passed.
[[nodiscard]] std::string format_age(double seconds);
/// "0.41 s", "12.3 s", "95 s".
[[nodiscard]] std::string format_seconds(double seconds);
[[nodiscard]] std::string format_seconds(std::chrono::milliseconds time);
/// "2026-03-01T17:04:05.123Z" of seconds since the epoch.
[[nodiscard]] std::string format_rfc3339(double epoch_seconds);
/// "0-3,5,7" of sorted numbers.
[[nodiscard]] std::string format_ranges(const std::vector<std::uint64_t>& sorted);
/// "pts/3", "tty1", "ttyS0", "4:64" of the number of a terminal as /proc/PID/stat encodes it; not for 0.
[[nodiscard]] std::string format_tty(std::uint32_t device);
/// "1 process", "3 processes".
[[nodiscard]] std::string counted(std::size_t number, std::string_view one, std::string_view many);

/// Filled with blanks to `columns` display columns; longer text stays as it is.
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t columns);
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t columns);
/// Cut at the end to `columns`, with "..." where something is missing.
[[nodiscard]] std::string elide_end(std::string_view text, std::size_t columns);
/// `text` broken at blanks into lines of at most `width` columns, each after `indent` blanks and each ended by a line
/// feed.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

/// The same as an item of a list: "- " at the first line, later ones under its text.
[[nodiscard]] std::string bullet(std::string_view text, std::size_t indent, std::size_t width);

/// "not recorded: ...", a line for what was done and could be kept nowhere; else empty.
[[nodiscard]] std::string unrecorded_line(const std::optional<RecordOutcome>& record, std::size_t width);

enum class Paint { plain, strong, faint, good, bad, doubtful };
/// `text` between the escapes for `paint`, or as it is where the style has no colour.
[[nodiscard]] std::string painted(std::string_view text, Paint paint, const RenderStyle& style);

}  // namespace vacate
