// SPDX-License-Identifier: Apache-2.0
#include "plan/agreement.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/assemble.h"
#include "plan/mps.h"

namespace vacate {
namespace {

bool is_same(const ProcessKey& a, const ProcessKey& b) noexcept {
  const bool differ = a.pidfd_inode != 0 && b.pidfd_inode != 0 && a.pidfd_inode != b.pidfd_inode;
  return a.pid == b.pid && a.start_ticks == b.start_ticks && !differ;
}

std::string_view unit_of(const Step& step) noexcept { return step.unit ? std::string_view{step.unit->name} : ""; }

bool is_same_step(const Step& a, const Step& b) noexcept {
  return a.action == b.action && is_same(a.key, b.key) && unit_of(a) == unit_of(b);
}

const Step* counterpart(const Plan& plan, const Step& step) {
  const auto at =
      std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& other) { return is_same_step(other, step); });
  return at == plan.steps.end() ? nullptr : &*at;
}

const Step* step_about(const Plan& plan, const ProcessKey& key) {
  const auto at =
      std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return is_same(step.key, key); });
  return at == plan.steps.end() ? nullptr : &*at;
}

/// Nobody looked at a KILL that the older plan ruled out.
void tighten(EndingTerms& terms, const EndingTerms& reviewed) {
  terms.term_only = terms.term_only || reviewed.term_only;
  if (reviewed.grace) terms.grace = std::max(terms.grace.value_or(*reviewed.grace), *reviewed.grace);
}

struct Fate {
  StepStatus status = StepStatus::skipped;
  std::string why;
};

class Agreeing {
 public:
  Agreeing(const Plan& reviewed, const Plan& fresh, const Snapshot& snapshot, const Attribution& attribution)
      : reviewed_(reviewed), fresh_(fresh), snapshot_(snapshot), attribution_(attribution) {}

  Agreement run(Newcomers newcomers) && {
    agreement_.plan.boot_id = fresh_.boot_id;
    agreement_.plan.pid_namespace = fresh_.pid_namespace;
    for (const auto& step : fresh_.steps) take_common(step);
    for (const auto& step : reviewed_.steps)
      if (!is_covered(step)) add_missing(step);
    if (newcomers == Newcomers::named)
      for (const auto& step : fresh_.steps)
        if (!is_common(step)) add_unreviewed(step);
    agreement_.plan = spare_mps_servers(std::move(agreement_.plan), snapshot_);
    agreement_.plan.id = plan_id(agreement_.plan);
    return std::move(agreement_);
  }

 private:
  /// Refused now is refused, whatever was reviewed of it.
  [[nodiscard]] bool is_common(const Step& step) const {
    return (counterpart(reviewed_, step) != nullptr && is_reviewed_unit(step)) ||
           (step.action == Action::refuse && step_about(reviewed_, step.key) != nullptr);
  }
  /// A unit ends as a whole: nobody agreed to its stop who did not see everybody in it.
  [[nodiscard]] bool is_reviewed_unit(const Step& step) const {
    return !step.unit || std::all_of(fresh_.steps.begin(), fresh_.steps.end(), [&](const Step& other) {
      return unit_of(other) != unit_of(step) || counterpart(reviewed_, other) != nullptr;
    });
  }
  [[nodiscard]] bool is_covered(const Step& reviewed) const {
    const auto* now = step_about(fresh_, reviewed.key);
    return now != nullptr && is_common(*now);
  }

  void take_common(const Step& step) {
    if (!is_common(step)) return;
    Step common = step;
    common.n = next();
    if (const auto* reviewed = counterpart(reviewed_, step)) {
      tighten(common.terms, reviewed->terms);
      const bool may_thaw = common.thaw && reviewed->thaw && reviewed->thaw->path == common.thaw->path;
      if (!may_thaw) common.thaw.reset();
    }
    agreement_.plan.steps.push_back(std::move(common));
  }

  void add_missing(const Step& reviewed) {
    const Fate fate = fate_of(reviewed);
    if (reviewed.action == Action::refuse) agreement_.aside.push_back(next());
    Step step = reviewed;
    step.rule = fate.status == StepStatus::already_gone ? kAlreadyGone : kNotPlannedNow;
    step.terms = {};
    // The file is anybody's: nobody verifies memory of a GPU that is not there.
    std::erase_if(step.gpus, [&](unsigned index) {
      return std::none_of(snapshot_.gpus.begin(), snapshot_.gpus.end(),
                          [&](const Gpu& gpu) { return gpu.index == index; });
    });
    add_undone(std::move(step), fate);
  }

  void add_unreviewed(const Step& fresh) {
    // One about the same process with another action has its place already: both together would be two of one pid.
    if (step_about(agreement_.plan, fresh.key) != nullptr) return;
    agreement_.aside.push_back(next());
    Step step = fresh;
    step.rule = kNotReviewed;
    step.terms = {};
    add_undone(std::move(step), {StepStatus::skipped, "the reviewed plan does not have it: look at a new one"});
  }

  void add_undone(Step step, const Fate& fate) {
    step.n = next();
    step.action = Action::refuse;
    step.unit.reset();
    step.thaw.reset();
    step.ask = Ask::at_once;
    step.because.insert(step.because.begin(), fate.why);
    agreement_.decided.push_back({step.n, step.key.pid, fate.status, {}, 0, fate.why});
    agreement_.plan.steps.push_back(std::move(step));
  }

  [[nodiscard]] Fate fate_of(const Step& reviewed) const {
    const pid_t pid = reviewed.key.pid;
    const auto* process = snapshot_.find(pid);
    if (process == nullptr && is_hiding()) return {StepStatus::skipped, "it may be hidden from here: run as root"};
    if (process == nullptr || (is_gone(*process) && is_same(process->key, reviewed.key)))
      return {StepStatus::already_gone, "it has ended since the plan was made"};
    if (!is_same(process->key, reviewed.key))
      return {StepStatus::identity_changed,
              fmt::format("pid {} is {} now, which nobody looked at", pid, to_string(process->key))};
    const auto* now = step_about(fresh_, reviewed.key);
    if (now != nullptr && now->unit && now->action == reviewed.action)
      return {StepStatus::skipped,
              fmt::format("the stop of {} would end others too that the reviewed plan does not have", now->unit->name)};
    if (now != nullptr)
      return {StepStatus::skipped, fmt::format("the reviewed plan says {} of it, a fresh one {}",
                                               describe(reviewed.action), describe(now->action))};
    const auto* holder = attribution_.find(pid);
    // As good as done, like one that lets go between the plan and its signal.
    if (holder == nullptr && reviewed.holder && snapshot_.visibility.all_references)
      return {StepStatus::identity_changed, "it holds no GPU now"};
    if (holder == nullptr && !snapshot_.visibility.all_references)
      return {StepStatus::skipped, "a fresh plan does not end it: whether it holds a GPU cannot be seen from here now"};
    if (holder == nullptr) return {StepStatus::skipped, "a fresh plan does not end it: it holds no GPU now"};
    // Left over, and still not to be ended: it is the options that leave it out.
    if (holder->standing == Standing::leftover)
      return {
          StepStatus::skipped,
          "a fresh plan with these options leaves it out, though it is left over: repeat those of the reviewed plan"};
    return {StepStatus::skipped,
            fmt::format("a fresh plan with these options does not end it: it is {}", describe(holder->standing))};
  }

  [[nodiscard]] bool is_hiding() const {
    static constexpr std::array<std::string_view, 3> kHiding = {"hidepid", "hidden-process", "proc-unlisted"};
    const auto& spots = snapshot_.visibility.blind_spots;
    return std::any_of(spots.begin(), spots.end(), [](const BlindSpot& spot) {
      return std::find(kHiding.begin(), kHiding.end(), spot.code) != kHiding.end();
    });
  }

  [[nodiscard]] unsigned next() const { return static_cast<unsigned>(agreement_.plan.steps.size() + 1); }

  const Plan& reviewed_;
  const Plan& fresh_;
  const Snapshot& snapshot_;
  const Attribution& attribution_;
  Agreement agreement_;
};

}  // namespace

Result<void> check_same_machine(const Plan& reviewed, const Plan& fresh) {
  if (reviewed.boot_id != fresh.boot_id || fresh.boot_id.empty())
    return Error{ErrorCode::refused, fmt::format("the plan was made in another boot ({}, this is {}): make a new one",
                                                 printable(reviewed.boot_id, 64), printable(fresh.boot_id, 64))};
  if (reviewed.pid_namespace != fresh.pid_namespace || fresh.pid_namespace == 0)
    return Error{ErrorCode::refused,
                 fmt::format("the plan was made in another pid namespace ({}, this is {}): carry it out there",
                             reviewed.pid_namespace, fresh.pid_namespace)};
  return {};
}

Agreement agree(const Plan& reviewed, const Plan& fresh, const Snapshot& snapshot, const Attribution& attribution,
                Newcomers newcomers) {
  return Agreeing(reviewed, fresh, snapshot, attribution).run(newcomers);
}

}  // namespace vacate
