// SPDX-License-Identifier: Apache-2.0
// The status table. Columns get what they need, the title and the reason give way where the line is too short; many
// holders that look the same are one line with a count, and the reasons stand in full below, once a group.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"
#include "report/status.h"

namespace vacate {
namespace {

constexpr std::size_t kSameRowsShown = 4;  // more that look alike become one line

struct Row {
  std::string pid, user, title, memory, age, standing, because;
  Standing kind = Standing::unsure;
  std::size_t group = 0;
  std::size_t count = 1;
  std::uint64_t sort_key = 0;  ///< the most memory first; what is unknown before what is none

  [[nodiscard]] bool looks_like(const Row& other) const {
    return group == other.group && user == other.user && title == other.title && memory == other.memory &&
           standing == other.standing && because == other.because;
  }
};

struct Block {
  const Gpu* gpu = nullptr;
  const GpuAccount* account = nullptr;
  std::vector<Row> rows;
};

struct HolderWidths {
  std::size_t pid = 3, user = 4, title = 5, memory = 6, age = 3, standing = 8, because = 0;
};

Paint paint_for(Standing standing) {
  switch (standing) {
    case Standing::leftover:
      return Paint::bad;
    case Standing::live:
      return Paint::good;
    case Standing::unsure:
      return Paint::doubtful;
    case Standing::foreign:
      return Paint::faint;
  }
  return Paint::plain;
}

std::string memory_cell(const Holder& holder, unsigned gpu) {
  for (const auto& place : holder.gpus)
    if (place.index == gpu && place.memory.known()) return format_mib(*place.memory);
  switch (holder.role) {
    case HolderRole::files:
      return "files only";
    case HolderRole::inheritor:
      return "inherited";
    default:
      return "unknown";
  }
}

/// A few words for the line; the reasons themselves stand below the table.
std::string short_reason(const Holder& holder, const Attribution& attribution) {
  if (holder.protection) return "protected";
  const auto group = std::find_if(attribution.groups.begin(), attribution.groups.end(),
                                  [&](const Group& each) { return each.id == holder.group; });
  switch (holder.standing) {
    case Standing::leftover:
      return "owner is dead";
    case Standing::live:
      if (group == attribution.groups.end() || !group->owner) return "set up to stay";
      return fmt::format("owner {} lives", group->owner->pid);
    case Standing::unsure:
      return "nothing proves it";
    case Standing::foreign:
      return "out of sight";
  }
  return "";
}

/// A condition that a person wants to know of: stopped, stuck, frozen and the like.
std::string condition_words(const Process* process) {
  if (process == nullptr || process->condition == Condition::running) return "";
  return fmt::format("{}, ", describe(process->condition));
}

std::uint64_t sort_key_of(const Holder& holder, unsigned gpu) {
  for (const auto& place : holder.gpus)
    if (place.index == gpu && place.memory.known()) return 1 + place.memory->mib();
  return holder.pins_memory() ? 1 : 0;
}

Row row_of(const Holder& holder, unsigned gpu, const Snapshot& snapshot, const Attribution& attribution) {
  const Process* process = snapshot.find(holder.key.pid);
  Row row;
  row.pid = std::to_string(holder.key.pid);
  row.user = process != nullptr ? elide_end(printable(process->user), 12) : "?";
  row.title = process != nullptr ? printable(title_of(*process), 1024) : "?";
  row.memory = memory_cell(holder, gpu);
  row.age = process != nullptr ? format_age(snapshot.time - process->started) : "?";
  row.standing = describe(holder.standing);
  row.kind = holder.standing;
  row.because = condition_words(process) + short_reason(holder, attribution);
  row.group = holder.group;
  row.sort_key = sort_key_of(holder, gpu);
  return row;
}

/// One row for many that look alike, at the place of the first of them.
std::vector<Row> collapsed(std::vector<Row> rows) {
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto same = [&](const Row& row) { return row.looks_like(rows[i]); };
    const auto alike = static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), same));
    if (alike <= kSameRowsShown) {
      kept.push_back(rows[i]);
    } else if (std::none_of(kept.begin(), kept.end(), same)) {
      kept.push_back(rows[i]);
      kept.back().count = alike;
    }
  }
  for (auto& row : kept) {
    if (row.count == 1) continue;
    row.pid = fmt::format("{} pids", row.count);  // which ones stands with the reasons below
  }
  return kept;
}

std::vector<Block> blocks_of(const StatusReport& report) {
  std::vector<Block> blocks;
  for (const auto& account : report.attribution.accounts) {
    Block block;
    block.account = &account;
    for (const auto& gpu : report.snapshot.gpus)
      if (gpu.index == account.index) block.gpu = &gpu;
    if (block.gpu == nullptr) continue;
    for (const auto pid : account.holders)
      if (const auto* holder = report.attribution.find(pid))
        block.rows.push_back(row_of(*holder, account.index, report.snapshot, report.attribution));
    std::stable_sort(block.rows.begin(), block.rows.end(),
                     [](const Row& a, const Row& b) { return a.sort_key > b.sort_key; });
    block.rows = collapsed(std::move(block.rows));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// Natural widths first; where the line is too short the reason keeps a readable minimum and the title takes what is
/// left.
HolderWidths widths_for(const std::vector<Block>& blocks, std::size_t line) {
  static constexpr std::size_t kReadableReason = 18;
  static constexpr std::size_t kReadableTitle = 16;
  HolderWidths widths;
  for (const auto& block : blocks) {
    for (const auto& row : block.rows) {
      widths.pid = std::max(widths.pid, row.pid.size());
      widths.user = std::max(widths.user, display_width(row.user));
      widths.title = std::max(widths.title, display_width(row.title));
      widths.memory = std::max(widths.memory, row.memory.size());
      widths.age = std::max(widths.age, row.age.size());
      widths.because = std::max(widths.because, display_width(row.because));
    }
  }
  const std::size_t fixed =
      2 + widths.pid + widths.user + widths.memory + widths.age + widths.standing + 12;  // six gaps of two
  const std::size_t room = line > fixed + kReadableTitle ? line - fixed : kReadableTitle;
  if (widths.title + widths.because <= room) return widths;
  const std::size_t for_reason = std::min(widths.because, kReadableReason);
  if (room >= kReadableTitle + for_reason) {
    widths.title = std::min(widths.title, room - for_reason);
    widths.because = room - widths.title;
  } else {
    widths.title = std::min(widths.title, room);
    widths.because = 0;  // three letters and dots help nobody
  }
  return widths;
}

std::string line_of(const Row& row, const HolderWidths& widths, const RenderStyle& style) {
  std::string line =
      fmt::format("  {}  {}  {}  {}  {}  ", pad_left(row.pid, widths.pid), pad_right(row.user, widths.user),
                  pad_right(elide_middle(row.title, widths.title), widths.title), pad_left(row.memory, widths.memory),
                  pad_left(row.age, widths.age));
  line += painted(row.standing, paint_for(row.kind), style);
  if (widths.because > 0 && !row.because.empty())
    line += pad_right("", widths.standing - std::min(widths.standing, row.standing.size())) + "  " +
            elide_end(row.because, widths.because);
  return line + '\n';
}

std::string column_heads(const HolderWidths& widths, const RenderStyle& style) {
  std::string heads = fmt::format("  {}  {}  {}  {}  {}  {}", pad_left("PID", widths.pid),
                                  pad_right("USER", widths.user), pad_right("TITLE", widths.title),
                                  pad_left("MEMORY", widths.memory), pad_left("AGE", widths.age), "STANDING");
  if (widths.because > 0) heads += "  BECAUSE";
  return painted(heads, Paint::faint, style) + '\n';
}

// Rounded down, so that a full bar is a full GPU.
std::string bar(Bytes used, Bytes total, std::size_t cells) {
  const std::size_t filled = total.count == 0 ? 0 : std::min(used, total).count * cells / total.count;
  return "[" + std::string(filled, '#') + std::string(cells - filled, '.') + "]";
}

std::string gpu_line(const Gpu& gpu, const RenderStyle& style) {
  static constexpr std::size_t kBarCells = 16;
  const auto& memory = gpu.memory;
  std::string figures = "used " + format_mib(memory.used);
  if (memory.used.known() && memory.total.known())
    figures = fmt::format("{:>7} / {:>11} {}", with_thousands(memory.used->mib()), format_mib(*memory.total),
                          bar(*memory.used, *memory.total, kBarCells));
  if (gpu.state != GpuState::ok)
    figures = fmt::format("{}  {}", describe(gpu.state), memory.used.known() ? figures : "");
  const std::string head = fmt::format("GPU {}", gpu.index);
  const std::size_t used = display_width(head) + display_width(figures) + 4;
  const std::size_t room = style.width > used ? style.width - used : 0;
  const std::string name = pad_right(elide_middle(printable(gpu.name), room), room);
  return fmt::format("{}  {}  {}\n", painted(head, Paint::strong, style), name,
                     painted(figures, gpu.state == GpuState::ok ? Paint::plain : Paint::bad, style));
}

std::string untied_lines(const StatusReport& report, unsigned gpu, const RenderStyle& style) {
  std::string lines;
  for (const auto& charge : report.attribution.charged_to_nobody) {
    if (charge.gpu != gpu) continue;
    const auto text =
        fmt::format("{} charged to pid {}: {}", format_mib(charge.memory), charge.driver_pid, printable(charge.detail));
    lines += painted("  " + elide_end(text, style.width > 2 ? style.width - 2 : 0), Paint::faint, style) + '\n';
  }
  return lines;
}

/// "looked after by unit llm.service (pid 12), which starts it again".
std::string supervisor_words(const Supervisor& supervisor) {
  std::string words = "looked after by " + supervisor.kind;
  if (supervisor.name != supervisor.kind) words += " " + supervisor.name;
  if (supervisor.pid != 0) words += fmt::format(" (pid {})", supervisor.pid);
  if (supervisor.restarts == Restarts::yes) words += ", which starts it again";
  return words;
}

/// Holders whose reasons are the same.
struct Reasoned {
  Standing standing = Standing::unsure;
  std::vector<std::string> because;
  std::vector<std::uint64_t> pids;
};

std::vector<Reasoned> by_reason(const Attribution& attribution) {
  std::vector<Reasoned> entries;
  for (const auto& holder : attribution.holders) {
    std::vector<std::string> because = holder.because;
    if (holder.protection)
      because.insert(because.begin(), "protected, " + holder.protection->rule + ": " + holder.protection->detail);
    if (holder.supervisor) because.push_back(supervisor_words(*holder.supervisor));
    auto at = std::find_if(entries.begin(), entries.end(), [&](const Reasoned& entry) {
      return entry.standing == holder.standing && entry.because == because;
    });
    if (at == entries.end()) at = entries.insert(entries.end(), {holder.standing, std::move(because), {}});
    at->pids.push_back(static_cast<std::uint64_t>(holder.key.pid));
  }
  return entries;
}

/// The reasons in full, once for all holders that share them.
std::string reasons(const StatusReport& report, const RenderStyle& style) {
  static constexpr std::size_t kMostShown = 12;
  const auto entries = by_reason(report.attribution);
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kMostShown); ++i) {
    const auto& entry = entries[i];
    const auto head = fmt::format("{}: {}", describe(entry.standing), format_ranges(entry.pids));
    text += painted(elide_end(head, style.width), paint_for(entry.standing), style) + '\n';
    for (const auto& reason : entry.because) text += bullet(printable(reason), 2, style.width);
  }
  if (entries.size() > kMostShown)
    text += fmt::format("and {} for other reasons, see --json\n", counted(entries.size() - kMostShown, "set", "sets"));
  return text;
}

/// What the driver charges to processes that are gone and others keep: shown in lines of its own.
Bytes inherited(const Attribution& attribution, unsigned gpu) {
  Bytes sum;
  for (const auto& charge : attribution.charged_to_nobody)
    if (charge.gpu == gpu && !charge.inheritors.empty() && charge.memory.known()) sum += *charge.memory;
  return sum;
}

/// What no holder owns up to, GPUs with the same figure together.
std::string remainders(const StatusReport& report, const RenderStyle& style) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> by_figure;
  for (const auto& account : report.attribution.accounts) {
    if (!account.remainder.known()) continue;
    const Bytes unexplained = *account.remainder - inherited(report.attribution, account.index);
    if (unexplained.mib() > 0) by_figure[unexplained.mib()].push_back(account.index);
  }
  std::string text;
  for (const auto& [mib, gpus] : by_figure)
    text += wrap(fmt::format("remainder: {} MiB{} that no holder owns up to on GPU {}", with_thousands(mib),
                             gpus.size() > 1 ? " each" : "", format_ranges(gpus)),
                 0, style.width);
  return text;
}

/// One possible reason a line, for all GPUs that it is the same on.
std::string explanations(const StatusReport& report, const RenderStyle& style) {
  static constexpr std::size_t kMostShown = 6;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> entries;
  for (const auto& account : report.attribution.accounts) {
    for (const auto& explanation : account.explanations) {
      auto at =
          std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == explanation.text; });
      if (at == entries.end()) at = entries.insert(entries.end(), {explanation.text, {}});
      at->second.push_back(account.index);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kMostShown); ++i)
    text += bullet(fmt::format("GPU {}: {}", format_ranges(entries[i].second), printable(entries[i].first)), 2,
                   style.width);
  if (entries.size() > kMostShown)
    text += fmt::format("  and {}, see --json\n", counted(entries.size() - kMostShown, "other", "others"));
  return text;
}

bool is_about_reset(const Explanation& explanation) {
  return explanation.code == "driver-residue" || explanation.code == "ghost-utilization";
}

/// Who would make a reset fail, where one is what is left to do.
std::string reset_blockers(const StatusReport& report, const RenderStyle& style) {
  std::map<pid_t, std::pair<std::string, std::vector<std::uint64_t>>> entries;
  for (const auto& account : report.attribution.accounts) {
    if (std::none_of(account.explanations.begin(), account.explanations.end(), is_about_reset)) continue;
    for (const auto& blocker : account.reset_blockers) {
      entries[blocker.pid].first = blocker.way;
      entries[blocker.pid].second.push_back(account.index);
    }
  }
  std::string text;
  for (const auto& [pid, entry] : entries)
    text += wrap(fmt::format("in the way of a reset of GPU {}: {}; {}", format_ranges(entry.second), pid,
                             printable(entry.first)),
                 0, style.width);
  return text;
}

std::string blind_spots(const Visibility& visibility, const RenderStyle& style) {
  std::string text;
  for (const auto& spot : visibility.blind_spots)
    text +=
        painted(wrap(fmt::format("not seen: {} ({})", printable(spot.detail), printable(spot.code)), 0, style.width),
                Paint::doubtful, style);
  return text;
}

std::string summary(const StatusReport& report) {
  std::set<pid_t> pinning;
  std::set<pid_t> leftover;
  for (const auto& holder : report.attribution.holders) {
    if (!holder.pins_memory()) continue;
    pinning.insert(holder.key.pid);
    if (holder.standing == Standing::leftover) leftover.insert(holder.key.pid);
  }
  if (pinning.empty()) {
    const bool sees_all = report.snapshot.visibility.complete();
    if (report.of_selected)
      return sees_all ? "none of those selected holds GPU memory\n"
                      : "none of those selected that can be seen holds GPU memory\n";
    return sees_all ? "nobody holds GPU memory\n" : "nobody that can be seen holds GPU memory\n";
  }
  return fmt::format("{} GPU memory, {} leftover\n", counted(pinning.size(), "process holds", "processes hold"),
                     leftover.size());
}

std::string driver_line(const Snapshot& snapshot, const RenderStyle& style) {
  const Driver& driver = snapshot.driver;
  if (driver.state != DriverState::ok && snapshot.nodes.empty()) return "no GPU driver here: nothing can be pinned\n";
  std::string line = fmt::format("{} driver {}", printable(driver.vendor),
                                 driver.version.empty() ? "of unknown version" : printable(driver.version));
  if (driver.state == DriverState::ok)
    return painted(line + ", " + counted(snapshot.gpus.size(), "GPU", "GPUs"), Paint::faint, style) + '\n';
  line += fmt::format(": {}", describe(driver.state));
  if (!driver.detail.empty()) line += fmt::format(" ({})", printable(driver.detail));
  return painted(wrap(line, 0, style.width), Paint::bad, style);
}

}  // namespace

std::string render_replay_line(const Snapshot& snapshot, const RenderStyle& style) {
  return painted(wrap(fmt::format("replay: a machine as it was recorded at {}; nothing was looked at now, and commands "
                                  "named below are meant for that machine",
                                  format_rfc3339(snapshot.time)),
                      0, style.width),
                 Paint::doubtful, style);
}

std::string render_status_text(const StatusReport& report, const RenderStyle& style) {
  std::string text = report.source == Source::recording ? render_replay_line(report.snapshot, style) : "";
  text += driver_line(report.snapshot, style);
  if (report.snapshot.driver.state != DriverState::ok && report.snapshot.nodes.empty())
    return text;  // no blind spot matters
  const auto blocks = blocks_of(report);
  const HolderWidths widths = widths_for(blocks, style.width);
  bool headed = false;
  for (const auto& block : blocks) {
    text += gpu_line(*block.gpu, style);
    if (!block.rows.empty() && !std::exchange(headed, true)) text += column_heads(widths, style);
    for (const auto& row : block.rows) text += line_of(row, widths, style);
    text += untied_lines(report, block.account->index, style);
  }
  if (const auto why = reasons(report, style); !why.empty()) text += '\n' + why;
  if (!blocks.empty()) text += '\n' + remainders(report, style) + explanations(report, style);
  text += reset_blockers(report, style);
  for (const auto& line : report.unmatched)
    text += painted(wrap(printable(line), 0, style.width), Paint::doubtful, style);
  text += blind_spots(report.snapshot.visibility, style);
  if (!blocks.empty()) text += summary(report);
  if (!report.advice.empty()) text += render_advice(report.advice.front(), style);
  return text;
}

}  // namespace vacate
