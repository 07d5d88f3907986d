// SPDX-License-Identifier: Apache-2.0
// `vacate wait` for people. Everything a process chose passes printable().
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/advice.h"
#include "report/format.h"
#include "report/wait.h"

namespace vacate {
namespace {

constexpr std::size_t kMostHolders = 8;  ///< of one GPU; the rest is counted
constexpr std::size_t kTitle = 48;

std::string limit_text(const MemoryLimit& limit) {
  return limit.percent ? fmt::format("{}%", *limit.percent) : format_mib(limit.amount);
}

/// "idle", "less than 10% in use", "at least 50% free".
std::string condition_text(const WaitCondition& condition) {
  switch (condition.kind) {
    case ConditionKind::idle:
      return "idle";
    case ConditionKind::used_below:
      return fmt::format("less than {} in use", limit_text(condition.limit));
    case ConditionKind::free:
      return fmt::format("at least {} free", limit_text(condition.limit));
  }
  return "";
}

std::string gpus_text(const std::vector<GpuGate>& gates) {
  std::vector<std::uint64_t> indices;
  for (const auto& gate : gates) indices.push_back(gate.index);
  return indices.empty() ? "GPUs" : fmt::format("GPU {}", format_ranges(indices));
}

std::string title_of(const WaitReport& report, pid_t pid, std::size_t columns) {
  const auto* process = report.snapshot.find(pid);
  return process == nullptr ? "?" : elide_middle(printable(vacate::title_of(*process), 1024), columns);
}

std::string memory_text(const Holder& holder, unsigned gpu) {
  for (const auto& place : holder.gpus)
    if (place.index == gpu && place.memory.known()) return format_mib(*place.memory);
  return "memory unknown";
}

/// "for 12min": of a process, up to the last look.
std::string age_text(const WaitReport& report, pid_t pid) {
  const auto* process = report.snapshot.find(pid);
  if (process == nullptr) return "for who knows how long";
  return "for " + format_age(std::max(0.0, report.snapshot.time - process->started));
}

std::string holder_line(const WaitReport& report, const Holder& holder, unsigned gpu) {
  const auto* process = report.snapshot.find(holder.key.pid);
  const std::string user = process == nullptr ? "?" : elide_end(printable(process->user), 16);
  return fmt::format("GPU {}: {} {} ({}), {}, {}, running {}", gpu, holder.key.pid,
                     title_of(report, holder.key.pid, kTitle), user, memory_text(holder, gpu),
                     describe(holder.standing), age_text(report, holder.key.pid));
}

std::string unseen_line(const WaitReport& report, unsigned gpu, pid_t pid) {
  std::string detail;
  Reading<Bytes> memory;
  for (const auto& charge : report.attribution.charged_to_nobody) {
    if (charge.gpu != gpu || charge.driver_pid != pid) continue;
    detail = charge.detail;
    memory = charge.memory;
  }
  return fmt::format("GPU {}: {} {} is charged {}: {}", gpu, pid, title_of(report, pid, kTitle), format_mib(memory),
                     detail);
}

std::string lines_of(const WaitReport& report, const GpuGate& gate, const RenderStyle& style) {
  std::vector<std::string> lines;
  for (const auto pid : gate.in_the_way)
    if (const auto* holder = report.attribution.find(pid)) lines.push_back(holder_line(report, *holder, gate.index));
  for (const auto pid : gate.charged_unseen) lines.push_back(unseen_line(report, gate.index, pid));
  const std::size_t more = lines.size() > kMostHolders ? lines.size() - kMostHolders : 0;
  lines.resize(lines.size() - more);
  if (more > 0) lines.push_back(fmt::format("GPU {}: and {} more", gate.index, more));
  if (lines.empty() || !gate.detail.empty()) {
    const std::string figure = gate.used.known() ? fmt::format(", {} in use", format_mib(*gate.used)) : "";
    lines.push_back(fmt::format("GPU {}: {}{}{}{}", gate.index, describe(gate.state), figure,
                                gate.detail.empty() ? "" : ": ", printable(gate.detail)));
  }
  std::string text;
  for (const auto& line : lines) text += wrap(line, 0, style.width);
  return text;
}

/// Leftovers that are still there, and why.
std::string not_reaped_text(const WaitReport& report, const RenderStyle& style) {
  std::string text;
  for (const auto& result : report.reaped) {
    if (result.status == StepStatus::gone || result.status == StepStatus::already_gone) continue;
    const std::string detail = result.detail.empty() ? "" : ": " + printable(result.detail);
    text += wrap(fmt::format("{} was not ended, {}{}", result.pid, describe(result.status), detail), 0, style.width);
  }
  return text;
}

/// "free", of a wait for which not everybody counted: memory of the others may be in use.
std::string free_text(const WaitRequest& request) {
  const bool all_count =
      request.ignored_pids.empty() && request.ignored_units.empty() && !narrows_holders(request.selection);
  return all_count ? "free" : "free but for those that were not to count";
}

/// The command that would help where leftovers are in the way; nothing where none are.
std::string leftovers_text(const WaitReport& report, const RenderStyle& style) {
  std::vector<std::uint64_t> indices;
  for (const auto& gate : report.gates) {
    const bool any = std::any_of(gate.in_the_way.begin(), gate.in_the_way.end(), [&](pid_t pid) {
      const auto* holder = report.attribution.find(pid);
      return holder != nullptr && holder->standing == Standing::leftover;
    });
    if (any) indices.push_back(gate.index);
  }
  if (indices.empty()) return "";
  return wrap(fmt::format("leftovers are in the way; to end them: vacate free --gpu {}", fmt::join(indices, ",")), 0,
              style.width);
}

/// Whoever comes first, and how many more there are.
std::string first_in_the_way(const WaitReport& report) {
  const auto way = in_the_way(report);
  std::size_t unseen = 0;
  for (const auto& gate : report.gates) unseen += gate.charged_unseen.size();
  if (way.empty() && unseen == 0) {
    const auto at = std::find_if(report.gates.begin(), report.gates.end(),
                                 [](const GpuGate& gate) { return gate.state != GateState::free; });
    if (at == report.gates.end()) return report.gates.empty() ? report.note : "free, to stay so for a moment";
    return fmt::format("GPU {} {}{}{}", at->index, describe(at->state), at->detail.empty() ? "" : ": ", at->detail);
  }
  if (way.empty()) return fmt::format("waiting for {}", counted(unseen, "process", "processes") + " out of sight");
  const auto& first = *way.front();
  const std::size_t more = way.size() - 1 + unseen;
  return fmt::format("waiting for {} {}, running {}{}", first.key.pid, title_of(report, first.key.pid, kTitle),
                     age_text(report, first.key.pid), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::vector<const Holder*> in_the_way(const WaitReport& report) {
  std::vector<const Holder*> found;
  for (const auto& holder : report.attribution.holders) {
    const auto names = [&](const GpuGate& gate) {
      return std::binary_search(gate.in_the_way.begin(), gate.in_the_way.end(), holder.key.pid);
    };
    if (std::any_of(report.gates.begin(), report.gates.end(), names)) found.push_back(&holder);
  }
  return found;
}

std::string render_in_the_way(const WaitReport& report, const RenderStyle& style) {
  std::string text;
  for (const auto& gate : report.gates)
    if (gate.state != GateState::free) text += lines_of(report, gate, style);
  if (report.gates.empty()) text += wrap("no GPU to judge: " + printable(report.note), 0, style.width);
  return text;
}

std::vector<std::string> render_wait_lines(const WaitReport& report) {
  std::vector<std::string> lines;
  for (const auto& gate : report.gates) {
    std::string line = fmt::format("GPU {:<2} {:>11} of {:>11}  {}", gate.index, format_mib(gate.used),
                                   format_mib(gate.total), describe(gate.state));
    const auto count = gate.in_the_way.size() + gate.charged_unseen.size();
    if (!gate.in_the_way.empty())
      line += fmt::format("  {} {}", gate.in_the_way.front(), title_of(report, gate.in_the_way.front(), 32));
    if (count > 1) line += fmt::format(" and {} more", count - 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string render_wait_status(const WaitReport& report) {
  return printable(fmt::format("{}: {}", gpus_text(report.gates), first_in_the_way(report)), 200);
}

std::string render_wait_last_status(const WaitReport& report) {
  const std::string waited = format_seconds(report.waited);
  const std::string end =
      report.verdict == WaitVerdict::free
          ? fmt::format("{} when the wait ended, after {}", free_text(report.request), waited)
          : fmt::format("not to be had when the wait ended, after {}: {}", waited, first_in_the_way(report));
  return printable(fmt::format("{}: {}", gpus_text(report.gates), end), 200);
}

std::string render_wait_outcome(const WaitReport& report, const RenderStyle& style) {
  const std::string waited = format_seconds(report.waited);
  const std::string wanted = condition_text(report.request.condition);
  std::string text;
  switch (report.verdict) {
    case WaitVerdict::free:
      return painted(fmt::format("{} {}", gpus_text(report.gates),
                                 report.request.condition.kind == ConditionKind::idle ? free_text(report.request)
                                                                                      : "has " + wanted),
                     Paint::good, style) +
             fmt::format(", for {} now; waited {}\n", format_seconds(report.request.hold), waited);
    case WaitVerdict::timeout:
      text = fmt::format("gave up after {}: {} not {} for {}\n", waited, gpus_text(report.gates), wanted,
                         format_seconds(report.request.hold));
      break;
    case WaitVerdict::cannot_tell:
      text = fmt::format("cannot tell after {} whether {} {}\n", waited, gpus_text(report.gates), "can be used");
      break;
  }
  return painted(text.substr(0, text.size() - 1), Paint::bad, style) + '\n' + render_in_the_way(report, style) +
         not_reaped_text(report, style) + leftovers_text(report, style);
}

}  // namespace vacate
