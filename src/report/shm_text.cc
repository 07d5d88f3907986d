// SPDX-License-Identifier: Apache-2.0
// Shared memory for people. Segments of one family and verdict are one line where there are many of them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "report/format.h"
#include "report/shm.h"

namespace vacate {
namespace {

constexpr std::size_t kMostMembers = 8;  ///< of one family and verdict; the rest is counted

std::string size_text(Bytes amount) {
  if (amount.count < (1U << 20U)) return fmt::format("{} KiB", amount.count >> 10U);
  return format_mib(amount);
}

Paint paint_for(ShmVerdict verdict) {
  switch (verdict) {
    case ShmVerdict::unused:
      return Paint::bad;
    case ShmVerdict::in_use:
      return Paint::good;
    case ShmVerdict::too_young:
    case ShmVerdict::cannot_tell:
      return Paint::doubtful;
    case ShmVerdict::unknown_family:
    case ShmVerdict::not_ours:
      return Paint::faint;
  }
  return Paint::plain;
}

std::string title_of(const ShmSnapshot& snapshot, pid_t pid) {
  for (const auto& [known, title] : snapshot.titles)
    if (known == pid) return printable(title, 64);
  return "";
}

std::string users_text(const ShmSnapshot& snapshot, const std::vector<ShmUser>& users) {
  if (users.empty()) return "nobody";
  std::vector<pid_t> pids;
  for (const auto& user : users)
    if (pids.empty() || pids.back() != user.pid) pids.push_back(user.pid);
  if (pids.front() == 0) return "somebody";
  std::string text = fmt::format("{} {}", pids.front(), title_of(snapshot, pids.front()));
  if (pids.size() > 1) text += fmt::format(" and {} more", pids.size() - 1);
  return text;
}

/// Segments that are shown as one.
using GroupKey = std::tuple<std::size_t, ShmKind, std::string, ShmVerdict>;

std::string group_text(const ShmReport& report, const std::vector<std::size_t>& members, const RenderStyle& style) {
  const auto& snapshot = report.snapshot;
  const auto& finding = report.findings[members.front()];
  Bytes sum;
  for (const auto index : members) sum += snapshot.segments[index].on_disk;
  const std::string software = finding.software.empty() ? "unknown" : finding.software;
  std::string text =
      painted(describe(finding.verdict), paint_for(finding.verdict), style) +
      fmt::format("  {}, {}, {}\n", software, counted(members.size(), "segment", "segments"), size_text(sum));
  for (std::size_t i = 0; i < std::min(members.size(), kMostMembers); ++i) {
    const auto& segment = snapshot.segments[members[i]];
    const auto& each = report.findings[members[i]];
    std::string size = size_text(segment.on_disk);
    if (segment.size > segment.on_disk + mebibytes(1)) size += " of " + size_text(segment.size);  // sparse
    const std::string facts =
        fmt::format("{}  {}  {}  {}", pad_left(size, 11), printable(segment.user, 16),
                    format_age(std::max(0.0, snapshot.time - segment.modified)), users_text(snapshot, segment.users));
    const std::size_t room = style.width > 34 + 4 ? style.width - 34 - 4 : 20;
    text += elide_end(fmt::format("  {}  {}", pad_right(elide_middle(printable(segment.name, 1024), room), 24), facts),
                      style.width) +
            '\n';
    std::string why = each.because;
    for (const auto& piece : each.encodes) why += "; " + piece;
    text += wrap(printable(why), 4, style.width);
  }
  if (members.size() > kMostMembers) text += fmt::format("  and {} more\n", members.size() - kMostMembers);
  return text;
}

std::string segments_text(const ShmReport& report, const RenderStyle& style) {
  std::map<GroupKey, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < report.snapshot.segments.size() && i < report.findings.size(); ++i) {
    const auto& segment = report.snapshot.segments[i];
    groups[{segment.place, segment.kind, report.findings[i].family, report.findings[i].verdict}].push_back(i);
  }
  std::string text;
  for (const auto& [key, members] : groups) text += group_text(report, members, style);
  return text;
}

std::string place_text(const ShmReport& report, std::size_t index, const RenderStyle& style) {
  const auto& snapshot = report.snapshot;
  const auto& place = snapshot.places[index];
  Bytes gain;
  for (std::size_t i = 0; i < snapshot.segments.size() && i < report.findings.size(); ++i) {
    const auto& segment = snapshot.segments[i];
    if (segment.kind == ShmKind::file && segment.place == index && report.findings[i].verdict == ShmVerdict::unused)
      gain += segment.on_disk;
  }
  std::string line =
      fmt::format("{}: {} of {} used", printable(place.path, 256), format_mib(place.used), format_mib(place.size));
  if (gain.count > 0) line += fmt::format(", {} in segments that nobody uses", size_text(gain));
  if (place.read_only) line += ", mounted read-only";
  return painted(elide_end(line, style.width), Paint::strong, style) + '\n';
}

std::string deleted_text(const ShmReport& report, const RenderStyle& style) {
  std::string text;
  for (const auto& entry : report.snapshot.deleted) {
    const std::string size = entry.on_disk.known() ? size_text(*entry.on_disk) : "an unknown amount";
    text += wrap(fmt::format("deleted, but still in use: {} ({}) by {}: only the end of its users gives it back", size,
                             printable(entry.name, 256), users_text(report.snapshot, entry.users)),
                 0, style.width);
  }
  return text;
}

std::string blind_text(const ShmReport& report, const RenderStyle& style) {
  std::string text;
  for (const auto& spot : report.snapshot.visibility.blind_spots)
    text += wrap(fmt::format("not seen: {} ({})", printable(spot.detail), printable(spot.code)), 0, style.width);
  return text;
}

std::string verdict_sentence(const ShmReport& report, std::size_t removed, Bytes back) {
  switch (report.verdict) {
    case ShmCommandVerdict::removed:
      return fmt::format("removed {}, {} came back", counted(removed, "segment", "segments"), size_text(back));
    case ShmCommandVerdict::nothing_to_do:
      return "nothing to do: no segment here is proven unused; 'vacate shm' says why of each";
    case ShmCommandVerdict::would_remove:
      return "dry run: nothing was removed";
    case ShmCommandVerdict::remain:
      return "interrupted: not everything was removed";
    case ShmCommandVerdict::refused:
      return "refused: not everything may be removed by this user";
    case ShmCommandVerdict::cannot_tell:
      return "cannot tell: " + (report.plan.refusal.empty() ? "see above" : report.plan.refusal);
    case ShmCommandVerdict::listed:
      return "";
  }
  return "";
}

}  // namespace

// Results are in the order of their numbers, as the steps are.
const ShmResult* find_shm_result(const ShmReport& report, unsigned n) {
  const auto at = std::lower_bound(report.results.begin(), report.results.end(), n,
                                   [](const ShmResult& candidate, unsigned number) { return candidate.n < number; });
  return at != report.results.end() && at->n == n ? &*at : nullptr;
}

std::string shm_path(const ShmSnapshot& snapshot, const ShmSegment& segment) {
  if (segment.kind == ShmKind::sysv || segment.place >= snapshot.places.size()) return segment.name;
  const auto& path = snapshot.places[segment.place].path;
  return path + (path.ends_with('/') ? "" : "/") + segment.name;
}

std::string render_shm_text(const ShmReport& report, const RenderStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < report.snapshot.places.size(); ++i) text += place_text(report, i, style);
  if (report.snapshot.segments.empty()) text += "no shared memory\n";
  text += segments_text(report, style) + deleted_text(report, style) + blind_text(report, style);
  const bool any = std::any_of(report.findings.begin(), report.findings.end(),
                               [](const ShmFinding& finding) { return finding.verdict == ShmVerdict::unused; });
  if (any) text += "remove what nobody uses: vacate shm clean\n";
  return text;
}

std::string render_shm_plan_text(const ShmReport& report, const RenderStyle& style) {
  Bytes sum;
  std::string lines;
  for (const auto& step : report.plan.steps) {
    sum += step.on_disk;
    const auto path = shm_path(report.snapshot, report.snapshot.segments.at(step.segment));
    lines += fmt::format("  {}  {}\n", pad_left(size_text(step.on_disk), 11),
                         elide_middle(printable(path, 1024), style.width > 55 ? style.width - 15 : 40));
  }
  const std::string head = fmt::format("will remove {} that nobody uses, {}",
                                       counted(report.plan.steps.size(), "segment", "segments"), size_text(sum));
  return painted(head, Paint::strong, style) + '\n' + lines;
}

std::string render_shm_outcome_text(const ShmReport& report, const RenderStyle& style) {
  std::string text;
  std::size_t removed = 0;
  Bytes back;
  for (const auto& step : report.plan.steps) {
    const auto* result = find_shm_result(report, step.n);
    if (result == nullptr) continue;
    if (result->status == ShmStatus::removed) {
      ++removed;
      back += step.on_disk;
      continue;
    }
    text += wrap(fmt::format("{}: {}{}{}", printable(step.name, 1024), describe(result->status),
                             result->detail.empty() ? "" : ": ", printable(result->detail)),
                 0, style.width);
  }
  text += unrecorded_line(report.record, style.width);
  if (report.interrupted_by != 0)
    text += fmt::format("interrupted by signal {}: nothing more was removed\n", report.interrupted_by);
  return text + blind_text(report, style) + wrap(verdict_sentence(report, removed, back), 0, style.width);
}

std::string render_shm_cleanup_text(const ShmCleanup& cleanup, const RenderStyle& style) {
  std::string text;
  Bytes back;
  for (const auto& entry : cleanup.removed) back += entry.on_disk;
  if (!cleanup.removed.empty())
    text += fmt::format("shared memory: removed {} that only they used, {}\n",
                        counted(cleanup.removed.size(), "segment", "segments"), size_text(back));
  for (const auto& entry : cleanup.kept)
    text += wrap(fmt::format("shared memory: kept {}: {}", printable(entry.path, 1024), printable(entry.because)), 0,
                 style.width);
  return text;
}

}  // namespace vacate
