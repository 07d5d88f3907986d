// SPDX-License-Identifier: Apache-2.0
#include "verify/survivors.h"

#include <algorithm>

#include <fmt/format.h>

#include "verify/release_view.h"

namespace vacate {
namespace {

const Step* step_of(const Plan& plan, unsigned n) {
  const auto at = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.n == n; });
  return at == plan.steps.end() ? nullptr : &*at;
}

bool is_shell(const Process& process, const Snapshot& snapshot) {
  return process.exe.known() &&
         std::find(snapshot.shells.begin(), snapshot.shells.end(), *process.exe) != snapshot.shells.end();
}

/// The parent that can have started `ended`, and can start another: alive then and now, no shell, and no mere adopter.
const Process* supervisor_of(const Holder& ended, const Sighting& before, const Snapshot& now) {
  const auto* process = before.snapshot.find(ended.key.pid);
  if (process == nullptr || ended.standing == Standing::leftover) return nullptr;
  const auto* parent_then = before.snapshot.find(process->ppid);
  const auto* parent = now.find(process->ppid);
  if (parent_then == nullptr || parent == nullptr || !is_same_process(parent->key, parent_then->key) ||
      is_shell(*parent, now))
    return nullptr;
  return parent;
}

bool is_same_program(const Process& a, const Process& b) {
  return a.exe.known() && b.exe.known() ? *a.exe == *b.exe : a.comm == b.comm;
}

void add_replacements(const Step& step, const Sighting& before, const Snapshot& now, std::vector<Replacement>& found) {
  const auto* ended = before.attribution.find(step.key.pid);
  if (ended == nullptr || !is_same_process(ended->key, step.key)) return;
  const auto* parent = supervisor_of(*ended, before, now);
  const auto* process_then = before.snapshot.find(step.key.pid);
  if (parent == nullptr || process_then == nullptr) return;
  for (const auto& process : now.processes) {
    const auto* known = before.snapshot.find(process.key.pid);
    const bool is_new = known == nullptr || !is_same_process(known->key, process.key);
    if (is_new && process.ppid == parent->key.pid && !is_gone(process) && is_same_program(*process_then, process))
      found.push_back({step.n, step.key, process.key, parent->key.pid, title_of(*parent)});
  }
}

std::string what_keeps(const Process& process) {
  switch (process.condition) {
    case Condition::stuck:
      return fmt::format("uninterruptible in the kernel (state {}{}{}): a signal takes effect when that call returns",
                         process.state, process.wchan.empty() ? "" : ", ", process.wchan);
    case Condition::frozen:
      return "frozen by its control group: thaw it";
    case Condition::traced:
      return "held by a debugger or tracer";
    case Condition::dumping_core:
      return "writing a core dump";
    case Condition::exiting:
      return "on its way out, the driver is still tearing it down";
    case Condition::stopped:
      return "stopped";
    default:
      return "";
  }
}

}  // namespace

std::vector<Replacement> find_replacements(const Sighting& before, const Plan& plan,
                                           const std::vector<StepResult>& results, const Snapshot& now) {
  std::vector<Replacement> found;
  for (const auto& result : results) {
    const auto* step = step_of(plan, result.n);
    if (step != nullptr && has_ended(result.status)) add_replacements(*step, before, now, found);
  }
  return found;
}

bool may_be_replaced(const Sighting& before, const Plan& plan, const std::vector<StepResult>& results) {
  return std::any_of(results.begin(), results.end(), [&](const StepResult& result) {
    const auto* step = step_of(plan, result.n);
    const auto* holder = step != nullptr && has_ended(result.status) ? before.attribution.find(step->key.pid) : nullptr;
    return holder != nullptr && supervisor_of(*holder, before, before.snapshot) != nullptr;
  });
}

void explain_survivors(std::vector<StepResult>& results, const Plan& plan, const Snapshot& now) {
  for (auto& result : results) {
    if (result.status != StepStatus::timed_out) continue;
    const auto* step = step_of(plan, result.n);
    const auto* process = step != nullptr ? now.find(step->key.pid) : nullptr;
    if (process == nullptr || !is_same_process(process->key, step->key)) continue;
    if (const auto why = what_keeps(*process); !why.empty()) result.detail += "; " + why;
    if (process->condition == Condition::stuck) result.status = StepStatus::stuck;
  }
}

}  // namespace vacate
