// SPDX-License-Identifier: Apache-2.0
// The plan and the outcome of `free` for people. Steps that look alike are one line with their pids; what went as
// planned is counted, what did not is named.
#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/format.h"
#include "report/free.h"
#include "report/shm.h"

namespace vacate {
namespace {

/// Steps that a reader need not tell apart.
struct StepLine {
  const Step* first = nullptr;
  std::vector<std::uint64_t> pids;

  [[nodiscard]] bool takes(const Step& step) const {
    return first->action == step.action && first->ask == step.ask && first->title == step.title &&
           first->gpus == step.gpus && first->rule == step.rule && first->because == step.because &&
           first->terms == step.terms && first->unit == step.unit && first->thaw == step.thaw;
  }
};

std::vector<StepLine> lines_of(const Plan& plan) {
  std::vector<StepLine> lines;
  for (const auto& step : plan.steps) {
    auto line = std::find_if(lines.begin(), lines.end(), [&](const StepLine& known) { return known.takes(step); });
    if (line == lines.end()) line = lines.insert(lines.end(), StepLine{&step, {}});
    line->pids.push_back(static_cast<std::uint64_t>(step.key.pid));
  }
  for (auto& line : lines) std::sort(line.pids.begin(), line.pids.end());
  return lines;
}

/// Of a reviewed plan, and ended since: nobody refuses anything.
bool is_past(const Step& step) { return step.action == Action::refuse && step.rule == "already-gone"; }

std::string action_cell(const Step& step) {
  if (is_past(step)) return "gone";
  if (step.action == Action::refuse) return "refused";
  if (step.action == Action::terminate_client) return "by MPS";
  if (step.unit) return "stop " + elide_middle(printable(step.unit->name, 256), 24);
  switch (step.ask) {
    case Ask::at_once:
      return step.terms.term_only ? "TERM only" : "TERM";
    case Ask::at_half_grace:
      return "TERM later";
    case Ask::after_others:
      return "ends last";
  }
  return "TERM";
}

std::string gpu_cell(const std::vector<unsigned>& gpus) {
  if (gpus.empty()) return "no memory";
  return "GPU " + format_ranges({gpus.begin(), gpus.end()});
}

std::string title_cell(const StepLine& line) {
  const std::string title = printable(line.first->title, 1024);
  return line.pids.size() == 1 ? title : fmt::format("{} x {}", line.pids.size(), title);
}

struct PlanWidths {
  std::size_t action = 4, pids = 3, title = 5, gpus = 6;
};

PlanWidths widths_for(const std::vector<StepLine>& lines, const RenderStyle& style) {
  static constexpr std::size_t kWidestPids = 17;
  static constexpr std::size_t kReadableTitle = 16;
  PlanWidths widths;
  for (const auto& line : lines) {
    widths.pids = std::max(widths.pids, std::min(format_ranges(line.pids).size(), kWidestPids));
    widths.gpus = std::max(widths.gpus, gpu_cell(line.first->gpus).size());
    widths.action = std::max(widths.action, action_cell(*line.first).size());
    widths.title = std::max(widths.title, display_width(title_cell(line)));
  }
  const std::size_t fixed = 2 + widths.action + widths.pids + widths.gpus + 6;
  widths.title = std::min(widths.title, std::max(kReadableTitle, style.width - std::min(style.width, fixed)));
  return widths;
}

std::string step_lines(const std::vector<StepLine>& lines, const RenderStyle& style) {
  const PlanWidths widths = widths_for(lines, style);
  std::string text;
  for (const auto& line : lines) {
    const Step& step = *line.first;
    const Paint paint = is_past(step) ? Paint::faint : step.action == Action::refuse ? Paint::doubtful : Paint::bad;
    text += fmt::format("  {}  {}  {}  {}\n", painted(pad_right(action_cell(step), widths.action), paint, style),
                        pad_left(elide_middle(format_ranges(line.pids), widths.pids), widths.pids),
                        pad_right(elide_middle(title_cell(line), widths.title), widths.title), gpu_cell(step.gpus));
  }
  return text;
}

/// The reasons of a line. In a long plan what is said of one line only, beside reasons that it shares, is left to the
/// JSON.
std::vector<std::string> reasons_of(const StepLine& line, const std::vector<StepLine>& lines) {
  static constexpr std::size_t kLongPlan = 4;
  const auto& all = line.first->because;
  if (lines.size() < kLongPlan) return all;
  std::vector<std::string> shared;
  for (const auto& reason : all) {
    const auto users = std::count_if(lines.begin(), lines.end(), [&](const StepLine& other) {
      const auto& because = other.first->because;
      return std::find(because.begin(), because.end(), reason) != because.end();
    });
    if (users > 1) shared.push_back(reason);
  }
  return shared.empty() || line.first->action == Action::refuse ? all : shared;
}

/// Why, once for all steps with the same reasons.
std::string reason_lines(const std::vector<StepLine>& lines, const RenderStyle& style) {
  std::vector<std::pair<std::vector<std::string>, std::vector<std::uint64_t>>> entries;
  for (const auto& line : lines) {
    const auto reasons = reasons_of(line, lines);
    auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == reasons; });
    if (at == entries.end()) at = entries.insert(entries.end(), {reasons, {}});
    at->second.insert(at->second.end(), line.pids.begin(), line.pids.end());
  }
  std::string text;
  for (auto& [reasons, pids] : entries) {
    std::sort(pids.begin(), pids.end());
    text += elide_end(fmt::format("because, for {}:", format_ranges(pids)), style.width) + '\n';
    for (const auto& reason : reasons) text += painted(bullet(printable(reason), 2, style.width), Paint::faint, style);
  }
  return text;
}

/// From the first TERM of the run to this one's KILL, at the earliest; nothing where none is sent.
std::optional<std::chrono::milliseconds> kill_after(const Step& step, const FreeRequest& request) {
  if (!is_ending(step.action) || request.term_only || step.terms.term_only) return std::nullopt;
  const auto half = request.grace / 2;
  const auto own = std::max(step.terms.grace.value_or(half), half);
  return std::max(request.grace, (step.ask == Ask::at_half_grace ? half : half * 0) + own);
}

/// "4711", "12, 13 and 9 more"
std::string some_of(const std::vector<std::uint64_t>& pids) {
  static constexpr std::size_t kMostNamed = 4;
  if (pids.size() <= kMostNamed) return fmt::format("{}", fmt::join(pids, ", "));
  return fmt::format("{}, {} and {} more", pids[0], pids[1], pids.size() - 2);
}

/// What comes after TERM: the figure that holds for most, and those for whom a policy says otherwise.
std::string kill_words(const Plan& plan, const FreeRequest& request) {
  std::map<std::chrono::milliseconds, std::vector<std::uint64_t>> after;
  std::vector<std::uint64_t> never;
  for (const auto& step : plan.steps) {
    const auto pid = static_cast<std::uint64_t>(step.key.pid);
    if (const auto time = kill_after(step, request)) {
      after[*time].push_back(pid);
    } else if (is_ending(step.action)) {
      never.push_back(pid);
    }
  }
  if (after.empty()) return " by TERM only, no KILL";
  std::string words = fmt::format(", KILL {} after the first TERM", format_seconds(after.begin()->first));
  for (auto at = std::next(after.begin()); at != after.end(); ++at)
    words += fmt::format(", {} for {}", format_seconds(at->first), some_of(at->second));
  if (!never.empty()) words += fmt::format(", no KILL for {}", some_of(never));
  return words;
}

/// A line for each figure of grace that the time limit cuts off.
std::string late_kill_lines(const Plan& plan, const FreeRequest& request, const RenderStyle& style) {
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> lines;
  for (const auto& step : plan.steps) {
    const auto late = late_kill(step, request);
    if (!late) continue;
    auto at = std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == *late; });
    if (at == lines.end()) at = lines.insert(lines.end(), {*late, {}});
    at->second.push_back(static_cast<std::uint64_t>(step.key.pid));
  }
  std::string text;
  for (const auto& [late, pids] : lines)
    text += painted(wrap(fmt::format("KILL will not be sent to {}: {}", some_of(pids), late), 0, style.width),
                    Paint::doubtful, style);
  return text;
}

/// Names of the services that are stopped, each once, in order.
std::vector<std::string> units_of(const Plan& plan) {
  std::vector<std::string> units;
  for (const auto& step : plan.steps) {
    if (!step.unit) continue;
    const auto name = printable(step.unit->name, 256);
    if (std::find(units.begin(), units.end(), name) == units.end()) units.push_back(name);
  }
  return units;
}

std::string plan_head(const Plan& plan, const FreeRequest& request) {
  const auto count = [&](Action action) {
    return static_cast<std::size_t>(
        std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.action == action; }));
  };
  const std::size_t ended = count(Action::signal) + count(Action::terminate_client);
  const auto past = static_cast<std::size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), is_past));
  const std::size_t refused = count(Action::refuse) - past;
  const std::string gone = past > 0 ? fmt::format("; {} already gone", past) : "";
  if (ended == 0 && refused == 0 && !plan.ends_anybody()) return "nothing to end" + gone;
  std::string head = "plan: ";
  if (const auto units = units_of(plan); !units.empty()) {
    head +=
        fmt::format("stop {} ({})", fmt::join(units, ", "), counted(count(Action::stop_unit), "process", "processes"));
    if (ended > 0) head += "; ";
  }
  if (ended > 0 || head.size() == 6) head += fmt::format("end {}", counted(ended, "process", "processes"));
  if (ended > 0) head += kill_words(plan, request);
  if (refused > 0) head += fmt::format("; {} refused", refused);
  return head + gone;
}

const Step* step_of(const Plan& plan, unsigned n) {
  const auto at = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.n == n; });
  return at == plan.steps.end() ? nullptr : &*at;
}

bool is_as_planned(const StepResult& result) {
  return result.status == StepStatus::gone || result.status == StepStatus::already_gone;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string exception_line(const StepResult& result, const Step* step, const RenderStyle& style) {
  std::string line = fmt::format("  {}  {}", result.pid, describe(result.status));
  if (!result.signals.empty()) line += fmt::format(" after {}", joined(result.signals));
  if (step != nullptr) line += fmt::format("  {}", elide_middle(printable(step->title, 1024), 32));
  std::string text = painted(elide_end(line, style.width), Paint::bad, style) + '\n';
  std::string why = result.detail;
  if (why.empty() && step != nullptr && step->action == Action::refuse && !step->because.empty())
    why = step->because.front();
  if (!why.empty()) text += wrap(printable(why), 4, style.width);
  return text;
}

std::string results_text(const Outcome& outcome, const RenderStyle& style) {
  std::size_t by_term = 0;
  std::size_t by_kill = 0;
  std::size_t by_itself = 0;
  std::size_t by_unit = 0;
  std::string exceptions;
  std::vector<std::uint64_t> past;
  for (const auto& result : outcome.results) {
    const auto* planned = step_of(outcome.plan, result.n);
    if (planned != nullptr && is_past(*planned)) {
      past.push_back(static_cast<std::uint64_t>(result.pid));
      continue;
    }
    const bool was_refused = planned != nullptr && planned->action == Action::refuse;  // as one that is gone since
    if (!is_as_planned(result) || was_refused) {
      exceptions += exception_line(result, planned, style);
    } else if (result.signals.empty()) {
      ++(planned != nullptr && planned->unit && result.status == StepStatus::gone ? by_unit : by_itself);
    } else if (result.signals.back() == "KILL") {
      ++by_kill;
    } else {
      ++by_term;
    }
    if (is_as_planned(result) && !was_refused && !result.detail.empty())
      exceptions += exception_line(result, planned, style);
  }
  std::sort(past.begin(), past.end());
  if (!past.empty()) exceptions += wrap("already gone: " + format_ranges(past), 0, style.width);
  const auto ended = by_term + by_kill + by_itself + by_unit;
  if (ended == 0) return exceptions;
  std::vector<std::string> ways;
  if (by_unit > 0) ways.push_back(fmt::format("{} by stopping {}", by_unit, fmt::join(units_of(outcome.plan), ", ")));
  if (by_term > 0) ways.push_back(fmt::format("{} by TERM", by_term));
  if (by_kill > 0) ways.push_back(fmt::format("{} by KILL", by_kill));
  if (by_itself > 0) ways.push_back(fmt::format("{} without a signal", by_itself));
  return fmt::format("ended {}: {}\n", counted(ended, "process", "processes"), joined(ways)) + exceptions;
}

Paint paint_for(GpuVerdict verdict) {
  switch (verdict) {
    case GpuVerdict::released:
      return Paint::good;
    case GpuVerdict::in_use:
      return Paint::plain;
    case GpuVerdict::releasing:
    case GpuVerdict::cannot_tell:
      return Paint::doubtful;
    case GpuVerdict::held_by_nobody:
      return Paint::bad;
  }
  return Paint::plain;
}

std::string title_for(const FreeReport& report, pid_t pid) {
  for (const auto& [known, title] : report.titles)
    if (known == pid) return printable(title, 256);
  return "";
}

std::string held_by(const FreeReport& report, const GpuOutcome& gpu) {
  if (gpu.held_by.empty()) return "";
  std::string text = fmt::format("  pid {} {}", gpu.held_by.front(), title_for(report, gpu.held_by.front()));
  if (gpu.held_by.size() > 1) text += fmt::format(" and {} more", gpu.held_by.size() - 1);
  return text;
}

/// What may be behind memory that did not come back, and who would make the reset fail that would bring it.
std::string explanation_lines(const FreeReport& report, const GpuOutcome& gpu, const RenderStyle& style) {
  static constexpr std::size_t kIndent = 7;
  std::string text;
  if (gpu.verdict != GpuVerdict::held_by_nobody && gpu.verdict != GpuVerdict::cannot_tell) return text;
  for (const auto& explanation : gpu.explanations) text += bullet(printable(explanation.text), kIndent, style.width);
  if (gpu.verdict != GpuVerdict::held_by_nobody || gpu.reset_blockers.empty()) return text;
  text += wrap("in the way of a reset:", kIndent, style.width);
  for (const auto& blocker : gpu.reset_blockers)
    text += bullet(
        fmt::format("{} {}: {}", blocker.pid, elide_middle(title_for(report, blocker.pid), 40), printable(blocker.way)),
        kIndent, style.width);
  return text;
}

std::string gpu_lines(const FreeReport& report, const RenderStyle& style) {
  std::string text;
  std::size_t before = 0;
  std::size_t after = 0;
  const auto figure = [](const Reading<Bytes>& reading) {
    return reading.known() ? with_thousands(reading->mib()) : std::string("?");
  };
  for (const auto& gpu : report.outcome.gpus) {
    before = std::max(before, figure(gpu.before).size());
    after = std::max(after, figure(gpu.after).size());
  }
  for (const auto& gpu : report.outcome.gpus) {
    const std::string head = fmt::format("GPU {:<2} {} -> {} MiB  ", gpu.index, pad_left(figure(gpu.before), before),
                                         pad_left(figure(gpu.after), after));
    const std::string word(describe(gpu.verdict));
    const std::size_t used = head.size() + word.size();
    text += head + painted(word, paint_for(gpu.verdict), style) +
            elide_end(held_by(report, gpu), style.width > used ? style.width - used : 0) + '\n';
    if (!gpu.detail.empty()) text += wrap(printable(gpu.detail), 7, style.width);
    text += explanation_lines(report, gpu, style);
  }
  return text;
}

std::string released_sentence(const Outcome& outcome) {
  Bytes back;
  bool all_known = true;
  for (const auto& gpu : outcome.gpus) {
    all_known = all_known && gpu.before.known() && gpu.after.known();
    if (gpu.before.known() && gpu.after.known()) back += *gpu.before - *gpu.after;
  }
  if (back == Bytes{} && all_known) return "released: whoever was to be ended is gone, and no memory had to come back";
  return fmt::format("released: {} came back and was seen to, in {}", format_mib(back),
                     format_seconds(outcome.seconds));
}

std::string_view nobody_is(Scope scope) {
  switch (scope) {
    case Scope::leftovers:
      return "is a leftover that holds GPU memory";
    case Scope::unsure:
      return "is, or may be, a leftover that holds GPU memory";
    case Scope::all:
      return "holds GPU memory of its own";
  }
  return "";
}

/// Somebody would have been ended but for the plan that was reviewed: "no process here" would be wrong.
bool is_narrowed_by_a_plan(const Outcome& outcome) {
  return std::any_of(outcome.plan.steps.begin(), outcome.plan.steps.end(),
                     [](const Step& step) { return step.rule == "not-reviewed"; });
}

std::string verdict_sentence(const FreeReport& report) {
  const Outcome& outcome = report.outcome;
  switch (outcome.verdict) {
    case Verdict::released:
      return released_sentence(outcome);
    case Verdict::nothing_to_do:
      if (is_narrowed_by_a_plan(outcome))
        return "nothing to do: nobody whom the reviewed plan ends is there to be ended";
      return fmt::format("nothing to do: {} {}", report.of_selected ? "none among those selected" : "no process here",
                         nobody_is(report.scope));
    case Verdict::holders_remain:
      return outcome.dry_run ? "dry run: nothing was sent"
                             : "holders remain: not everything that was to be ended is gone";
    case Verdict::releasing:
      return "releasing: nobody is left to end, the memory is still on its way back";
    case Verdict::refused:
      return "refused: part of what was asked is not vacate's to end";
    case Verdict::cannot_tell:
      return "cannot tell: the memory was not seen to come back, see above";
    case Verdict::held_by_nobody:
      return "held by nobody: no process owns this memory, ending processes cannot help; reset the GPU or reboot";
  }
  return "";
}

Paint paint_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::released:
    case Verdict::nothing_to_do:
      return Paint::good;
    case Verdict::releasing:
    case Verdict::cannot_tell:
    case Verdict::refused:
      return Paint::doubtful;
    case Verdict::holders_remain:
    case Verdict::held_by_nobody:
      return Paint::bad;
  }
  return Paint::plain;
}

}  // namespace

std::string render_plan_text(const Plan& plan, const FreeRequest& request, const RenderStyle& style) {
  const auto lines = lines_of(plan);
  const std::string head = painted(wrap(plan_head(plan, request), 0, style.width), Paint::strong, style);
  return head + step_lines(lines, style) + reason_lines(lines, style) + late_kill_lines(plan, request, style);
}

std::optional<std::string> late_kill(const Step& step, const FreeRequest& request) {
  static constexpr std::chrono::milliseconds kRoom{60000};  // to see the memory come back
  const auto after = kill_after(step, request);
  if (!after || *after < request.timeout) return std::nullopt;
  return fmt::format("grace {} > --timeout {}; use --timeout {}min", format_seconds(*after),
                     format_seconds(request.timeout), std::chrono::ceil<std::chrono::minutes>(*after + kRoom).count());
}

std::string render_outcome_text(const FreeReport& report, const RenderStyle& style) {
  const Outcome& outcome = report.outcome;
  if (!report.has_driver) return "no GPU driver here: nothing can be pinned\n";
  std::string text =
      results_text(outcome, style) + gpu_lines(report, style) + render_shm_cleanup_text(outcome.shm, style);
  for (const auto& spot : outcome.visibility.blind_spots)
    text += wrap(fmt::format("not seen: {} ({})", printable(spot.detail), printable(spot.code)), 0, style.width);
  for (const auto& note : report.notes) text += wrap(printable(note), 0, style.width);
  text += unrecorded_line(outcome.record, style.width);
  if (outcome.interrupted_by != 0)
    text += fmt::format("interrupted by signal {}: nothing more was sent\n", outcome.interrupted_by);
  text += painted(wrap(verdict_sentence(report), 0, style.width), paint_for(outcome.verdict), style);
  if (!report.advice.empty()) text += render_advice(report.advice.front(), style);
  text += render_container_advice(report.containers, style);
  return text;
}

}  // namespace vacate
