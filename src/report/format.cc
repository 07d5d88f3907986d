// SPDX-License-Identifier: Apache-2.0
#include "report/format.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace vacate {

std::string format_tty(std::uint32_t device) {
  // new_encode_dev() of the kernel; the majors are those of Documentation/admin-guide/devices.txt.
  static constexpr std::uint32_t kConsoles = 4, kFirstPts = 136, kLastPts = 143, kFirstSerial = 64;
  const auto major = (device >> 8U) & 0xfffU;
  const auto minor = (device & 0xffU) | ((device >> 12U) & 0xfff00U);
  if (major >= kFirstPts && major <= kLastPts) return fmt::format("pts/{}", minor + (major - kFirstPts) * 256);
  if (major == kConsoles && minor < kFirstSerial) return fmt::format("tty{}", minor);
  if (major == kConsoles) return fmt::format("ttyS{}", minor - kFirstSerial);
  return fmt::format("{}:{}", major, minor);
}

std::string with_thousands(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string format_mib(Bytes amount) { return with_thousands(amount.mib()) + " MiB"; }

std::string format_mib(const Reading<Bytes>& amount) {
  return amount.known() ? format_mib(*amount) : fmt::format("unknown ({})", describe(amount.reason()));
}

std::string format_age(double seconds) {
  if (!(seconds >= 0)) return "?";  // a clock that was stepped
  const auto whole = static_cast<std::uint64_t>(std::min(seconds, 1e12));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}min", whole / 60);
  if (whole < 48UL * 3600) return fmt::format("{}h{:02}", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d", whole / 86400);
}

std::string format_seconds(double seconds) {
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} s", seconds);
}

std::string format_seconds(std::chrono::milliseconds time) {
  return format_seconds(std::chrono::duration<double>(time).count());
}

std::string format_rfc3339(double epoch_seconds) {
  using std::chrono::milliseconds;
  static constexpr double kLatest = 2.5e11;  // the year 9892: keeps the figure four digits wide
  const double bounded = std::clamp(epoch_seconds, 0.0, kLatest);
  const std::chrono::sys_time<milliseconds> when{milliseconds(std::llround(bounded * 1000))};
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss<milliseconds> time{when - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

std::string format_ranges(const std::vector<std::uint64_t>& sorted) {
  std::string text;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(sorted[first]);
    if (last > first) text += (last == first + 1 ? "," : "-") + std::to_string(sorted[last]);
    first = last + 1;
  }
  return text;
}

std::string counted(std::size_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", with_thousands(number), number == 1 ? one : many);
}

std::string pad_right(std::string_view text, std::size_t columns) {
  const std::size_t used = display_width(text);
  return std::string(text) + std::string(used < columns ? columns - used : 0, ' ');
}

std::string pad_left(std::string_view text, std::size_t columns) {
  const std::size_t used = display_width(text);
  return std::string(used < columns ? columns - used : 0, ' ') + std::string(text);
}

std::string elide_end(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 3) return std::string(columns, '.');
  std::string kept;
  std::size_t used = 0;
  while (!text.empty()) {
    std::size_t bytes = 1;  // printable() text is valid UTF-8: continuation bytes follow their leading byte
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80) ++bytes;
    const std::size_t width = display_width(text.substr(0, bytes));
    if (used + width > columns - 3) break;
    kept += text.substr(0, bytes);
    used += width;
    text.remove_prefix(bytes);
  }
  while (!kept.empty() && kept.back() == ' ') kept.pop_back();
  return kept + "...";
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  const std::size_t room = width > indent + 20 ? width - indent : 20;
  std::string lines;
  std::string line;
  std::size_t used = 0;
  for (const auto word : split(text, ' ')) {
    const std::size_t columns = display_width(word);
    if (used > 0 && used + 1 + columns > room) {
      lines += std::string(indent, ' ') + line + '\n';
      line.clear();
      used = 0;
    }
    if (used > 0) {
      line += ' ';
      ++used;
    }
    const std::string piece = elide_middle(word, room);  // a single word longer than a line
    line += piece;
    used += display_width(piece);
  }
  return lines + std::string(indent, ' ') + line + '\n';
}

std::string bullet(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines = wrap(text, indent + 2, width);
  lines[indent] = '-';
  return lines;
}

std::string unrecorded_line(const std::optional<RecordOutcome>& record, std::size_t width) {
  if (!record || record->lost == 0) return "";
  return wrap(fmt::format("not recorded{}: {}; what was done is said here only",
                          record->entries == 0 ? "" : fmt::format(", {} of it", record->lost), printable(record->why)),
              0, width);
}

std::string painted(std::string_view text, Paint paint, const RenderStyle& style) {
  if (style.colour == Colour::no || paint == Paint::plain || text.empty()) return std::string(text);
  std::string_view start;
  switch (paint) {
    case Paint::plain:
      break;
    case Paint::strong:
      start = "\x1b[1m";
      break;
    case Paint::faint:
      start = "\x1b[2m";
      break;
    case Paint::good:
      start = "\x1b[32m";
      break;
    case Paint::bad:
      start = "\x1b[31m";
      break;
    case Paint::doubtful:
      start = "\x1b[33m";
      break;
  }
  return fmt::format("{}{}\x1b[0m", start, text);
}

}  // namespace vacate
