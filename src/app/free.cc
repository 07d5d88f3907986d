// SPDX-License-Identifier: Apache-2.0
#include "app/free.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/select.h"
#include "app/shm_of_ended.h"
#include "attribute/protection.h"
#include "base/deadline.h"
#include "execute/live_executor.h"
#include "execute/recording_executor.h"
#include "plan/narrowing.h"
#include "plan/plan_free.h"
#include "probe/holdings.h"
#include "verify/release_budget.h"
#include "verify/survivors.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;

void insert_all(std::vector<unsigned>& into, const std::vector<unsigned>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

/// The selected GPUs, and those that what is to be ended is on: a process ends as a whole, so its memory has to come
/// back everywhere. Where only holders were named, those on which they are.
std::vector<unsigned> gpus_to_verify(const Sighting& before, const Plan& plan, const Selection& selection) {
  std::vector<unsigned> gpus = selection.gpus;
  for (const auto& step : plan.steps)
    if (selection.all_gpus || is_ending(step.action)) insert_all(gpus, step.gpus);
  if (selection.all_gpus && !is_narrowing(selection))
    for (const auto& gpu : before.snapshot.gpus) gpus.push_back(gpu.index);
  if (selection.all_gpus)
    for (const auto& holder : before.attribution.holders)
      if (is_selected(holder, before.snapshot, selection))
        for (const auto& place : holder.gpus) gpus.push_back(place.index);
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  return gpus;
}

/// What is reported: the selected GPUs, and of the others those that the verdict speaks against.
void leave_out_unselected(std::vector<Release>& releases, const Selection& selection) {
  if (selection.all_gpus) return;
  std::erase_if(releases, [&](const Release& release) {
    const auto& chosen = selection.gpus;
    return release.proof == Proof::seen &&
           std::find(chosen.begin(), chosen.end(), release.outcome.index) == chosen.end();
  });
}

std::vector<std::pair<pid_t, std::string>> titles_of(const std::vector<GpuOutcome>& gpus, const Snapshot& snapshot) {
  std::vector<std::pair<pid_t, std::string>> titles;
  const auto note = [&](pid_t pid) {
    if (const auto* process = snapshot.find(pid)) titles.emplace_back(pid, title_of(*process));
  };
  for (const auto& gpu : gpus) {
    std::for_each(gpu.held_by.begin(), gpu.held_by.end(), note);
    for (const auto& blocker : gpu.reset_blockers) note(blocker.pid);
  }
  std::sort(titles.begin(), titles.end());
  titles.erase(std::unique(titles.begin(), titles.end()), titles.end());
  return titles;
}

/// `policy` with the patience that the memory to be unpinned takes.
Policy with_allowance(Policy policy, const PreparedFree& prepared) {
  policy.recent_release += allowance_for(prepared);
  return policy;
}

/// The GPUs as they were at the one look that was taken.
std::vector<Release> releases_at(const PreparedFree& prepared, const Policy& policy) {
  std::vector<Release> releases;
  const DriverFigures figures{prepared.before.snapshot.gpus, prepared.before.snapshot.charges};
  for (const auto index : prepared.gpus) {
    const ReleaseView view = view_of(index, prepared.before, {}, prepared.before, figures);
    const Judgement judgement = judge_release(view, policy);
    Release release{{}, judgement.settled ? judgement.proof : Proof::pending};
    release.outcome = {index,
                       {},
                       view.before,
                       view.used,
                       view.baseline,
                       judgement.verdict,
                       seconds_since(prepared.started),
                       view.holders,
                       judgement.detail};
    for (const auto& gpu : prepared.before.snapshot.gpus)
      if (gpu.index == index) release.outcome.uuid = gpu.uuid;
    releases.push_back(std::move(release));
  }
  return releases;
}

std::vector<GpuOutcome> outcomes_of(std::vector<Release> releases) {
  std::vector<GpuOutcome> gpus;
  for (auto& release : releases) gpus.push_back(std::move(release.outcome));
  return gpus;
}

/// What the last look says of memory that did not come back, and of a reset.
void explain(std::vector<GpuOutcome>& gpus, const Attribution& attribution) {
  for (auto& gpu : gpus) {
    for (const auto& account : attribution.accounts) {
      if (account.index != gpu.index) continue;
      gpu.explanations = account.explanations;
      gpu.reset_blockers = account.reset_blockers;
    }
  }
}

/// Whom `--all` left out although it pins a GPU that was selected: what an importer keeps is inferred, which is not
/// enough to end what somebody may own.
std::vector<std::string> left_out(const Sighting& last, const FreeRequest& request) {
  std::vector<std::string> lines;
  if (request.scope != Scope::all || !request.selection.pids.empty()) return lines;
  std::string pids;
  for (const auto& holder : narrowed(last.attribution, last.snapshot, request.selection).holders)
    if (holder.role == HolderRole::importer && holder.standing != Standing::leftover)
      pids += fmt::format("{}{}", pids.empty() ? "" : ",", holder.key.pid);
  if (!pids.empty())
    lines.push_back(fmt::format("left out, for what it imported is inferred only: {}; --pid names it", pids));
  return lines;
}

/// Says with whom KILL did not get its turn.
void name_late_kills(Outcome& outcome, const FreeRequest& request) {
  for (auto& result : outcome.results) {
    if (result.status != StepStatus::timed_out || outcome.interrupted_by != 0) continue;
    for (const auto& step : outcome.plan.steps) {
      const auto late = step.n == result.n ? late_kill(step, request) : std::nullopt;
      if (late) result.detail += fmt::format("; KILL was not sent: {}", *late);
    }
  }
}

FreeReport report_of(Outcome outcome, const Sighting& last, const PreparedFree& prepared) {
  const Selection& selection = prepared.request.selection;
  FreeReport report;
  explain(outcome.gpus, last.attribution);
  report.titles = titles_of(outcome.gpus, last.snapshot);
  report.advice =
      advise(last.snapshot, narrowed(last.attribution, last.snapshot, selection), {selection, prepared.policy_file});
  report.containers = advise_on_containers(prepared.before.snapshot, outcome.plan);
  report.of_selected = !selection.all_gpus || narrows_holders(selection);
  report.scope = prepared.request.scope;
  report.notes = left_out(last, prepared.request);
  report.has_driver = last.snapshot.driver.state == DriverState::ok || !last.snapshot.nodes.empty();
  report.outcome = std::move(outcome);
  return report;
}

/// Everything up to the verdict of a command that changes nothing.
Outcome outcome_of_look(const PreparedFree& prepared, const std::vector<Release>& releases) {
  Outcome outcome;
  outcome.plan = prepared.plan;
  outcome.gpus = outcomes_of(releases);
  outcome.seconds = seconds_since(prepared.started);
  outcome.visibility = prepared.before.snapshot.visibility;
  return outcome;
}

/// In place of what an executor makes of their refusals.
void put_decided(std::vector<StepResult>& results, const std::vector<StepResult>& decided) {
  for (auto& result : results)
    for (const auto& known : decided)
      if (known.n == result.n) result = known;
}

/// Those that speak about the verdict.
std::vector<StepResult> telling(std::vector<StepResult> results, const std::vector<unsigned>& aside) {
  std::erase_if(results, [&](const StepResult& result) {
    return std::find(aside.begin(), aside.end(), result.n) != aside.end();
  });
  return results;
}

/// It was not signalled, or not to the end, because it called exec or had let go; and it holds a GPU, still or again.
bool holds_all_the_same(const Outcome& outcome, const Attribution& now) {
  return std::any_of(outcome.results.begin(), outcome.results.end(), [&](const StepResult& result) {
    const auto* holder = result.status == StepStatus::identity_changed ? now.find(result.pid) : nullptr;
    return holder != nullptr &&
           std::any_of(outcome.plan.steps.begin(), outcome.plan.steps.end(),
                       [&](const Step& step) { return step.n == result.n && is_same_process(step.key, holder->key); });
  });
}

bool is_unreadable(const std::vector<Release>& releases) {
  return std::any_of(releases.begin(), releases.end(),
                     [](const Release& release) { return release.proof == Proof::unreadable; });
}

/// A GPU whose memory is back has nobody. On one that is still in use, somebody about whom something could not be read
/// may be left over.
bool may_hide_leftovers(const std::vector<Release>& releases, std::initializer_list<const Snapshot*> looks) {
  const bool all_back = std::all_of(releases.begin(), releases.end(), [](const Release& release) {
    return release.outcome.verdict == GpuVerdict::released;
  });
  return !all_back && std::any_of(looks.begin(), looks.end(), [](const auto* look) { return failed_to_read(*look); });
}

/// One command at work: everything it has done so far.
class FreeConduct {
 public:
  FreeConduct(PreparedFree prepared, const FreeTools& tools, const Policy& policy)
      : tools_(tools),
        policy_(with_allowance(policy, prepared)),
        prepared_(std::move(prepared)),
        deadline_(Deadline::at(prepared_.started + prepared_.request.timeout)) {
    outcome_.plan = prepared_.plan;
    last_ = prepared_.before;
  }

  [[nodiscard]] FreeReport run();

 private:
  void execute(const Plan& round, const PinSet& pins, const Snapshot& seen);
  [[nodiscard]] Escalation escalation(const Plan& round);
  void note_interruption();
  void look_again();
  [[nodiscard]] std::vector<Release> release_everything();
  [[nodiscard]] std::vector<Release> unverified() const;
  [[nodiscard]] Watched watch();
  [[nodiscard]] Plan next_round(const Sighting& now) const;
  [[nodiscard]] bool may_go_on() const {
    return outcome_.rounds < policy_.max_rounds && !deadline_.passed() && !interrupted_;
  }
  void name_replacements();
  void conclude(std::vector<Release> releases);

  const FreeTools& tools_;
  Policy policy_;
  PreparedFree prepared_;
  Deadline deadline_;
  Outcome outcome_;
  Sighting last_;
  PinSet last_pins_;
  std::vector<Replacement> replacements_;
  std::optional<Clock::time_point> first_term_;
  bool interrupted_ = false;
};

void FreeConduct::execute(const Plan& round, const PinSet& pins, const Snapshot& seen) {
  const auto& request = prepared_.request;
  const ExecutionRules rules{escalation(round), request.grace, policy_.resource_tracker_patience,
                             policy_.driver_deadline};
  const auto holds = [&](const ProcessKey& key) { return still_holds(key, seen); };
  LiveExecutor executor(pins, holds, rules, tools_.execution, tools_.log, tools_.wake);
  for (auto& result : executor.execute(round, seen, deadline_)) outcome_.results.push_back(std::move(result));
  put_decided(outcome_.results, prepared_.decided);
  if (round.ends_anybody()) ++outcome_.rounds;
  note_interruption();
}

/// The grace counts from the first TERM of the whole run. A successor that only turned up after it was forked by one
/// that let its TERM pass, and another grace for each copy would never end. Anybody else of a later round has not been
/// asked yet and is.
Escalation FreeConduct::escalation(const Plan& round) {
  if (prepared_.request.term_only) return Escalation::term_only;
  if (!first_term_) first_term_ = Clock::now();
  const bool only_successors = std::all_of(round.steps.begin(), round.steps.end(), [](const Step& step) {
    return !is_ending(step.action) || step.rule == "successor";
  });
  const bool is_over = Clock::now() >= *first_term_ + prepared_.request.grace;
  return is_over && only_successors ? Escalation::kill_at_once : Escalation::kill_after_grace;
}

void FreeConduct::note_interruption() {
  if (tools_.interrupted_by) outcome_.interrupted_by = tools_.interrupted_by();
  interrupted_ = outcome_.interrupted_by != 0;
}

void FreeConduct::look_again() {
  Look look = tools_.look();
  if (!knows_own_chain(look.scan.snapshot)) look.scan.snapshot.caller = prepared_.before.snapshot.caller;
  last_ = {std::move(look.scan.snapshot), std::move(look.attribution)};
  last_pins_ = std::move(look.scan.pins);
}

/// What is left to do: whoever was dealt with is not dealt with twice, and a supervisor that starts its process anew is
/// not fought but named.
Plan FreeConduct::next_round(const Sighting& now) const {
  if (!prepared_.plan.ends_anybody()) return {};
  Plan next = plan_next_round(now.snapshot, now.attribution, prepared_.request, outcome_.plan,
                              prepared_.before.snapshot, prepared_.before.attribution);
  const auto replacements = find_replacements(prepared_.before, outcome_.plan, outcome_.results, now.snapshot);
  std::erase_if(next.steps, [&](const Step& step) {
    const auto is_known = [&](const Step& known) { return is_same_process(known.key, step.key); };
    const auto is_replacement = [&](const Replacement& each) { return is_same_process(each.replacement, step.key); };
    return std::any_of(outcome_.plan.steps.begin(), outcome_.plan.steps.end(), is_known) ||
           std::any_of(replacements.begin(), replacements.end(), is_replacement);
  });
  unsigned n = outcome_.plan.steps.empty() ? 0 : outcome_.plan.steps.back().n;
  for (auto& step : next.steps) step.n = ++n;
  return next;
}

/// Execute, look, plan what the look adds, until nothing is added (a process may fork between the scan and its end),
/// then watch the memory; whoever turns up meanwhile and belongs to what was to be ended opens another round.
std::vector<Release> FreeConduct::release_everything() {
  if (!outcome_.plan.empty()) execute(outcome_.plan, prepared_.pins, prepared_.before.snapshot);
  bool is_fresh = outcome_.plan.empty();  // the last look is newer than everything that was done
  while (!interrupted_) {
    if (!is_fresh) look_again();
    is_fresh = true;
    const Plan round = next_round(last_);
    if (round.ends_anybody() && may_go_on()) {
      outcome_.plan.steps.insert(outcome_.plan.steps.end(), round.steps.begin(), round.steps.end());
      execute(round, last_pins_, last_.snapshot);
      is_fresh = false;
      continue;
    }
    Watched watched = watch();
    if (watched.end == Watched::End::interrupted) note_interruption();
    if (watched.end != Watched::End::another_round) return std::move(watched.releases);
  }
  return unverified();
}

std::vector<Release> FreeConduct::unverified() const {
  std::vector<Release> releases = releases_at(prepared_, policy_);
  for (auto& release : releases) {
    release.proof = Proof::unreadable;
    release.outcome.verdict = GpuVerdict::cannot_tell;
    release.outcome.after = Unknown::not_asked;
    release.outcome.detail = "interrupted before the release was checked";
  }
  return releases;
}

Watched FreeConduct::watch() {
  WatchTools tools;
  tools.look = [this] {
    look_again();
    return last_;
  };
  tools.sample = tools_.sample;
  tools.reopen_driver = tools_.reopen_driver;
  tools.wants_round = [this](const Sighting& now) { return may_go_on() && next_round(now).ends_anybody(); };
  tools.observer = &tools_.release;
  tools.wake = tools_.wake;
  const bool second_look = may_be_replaced(prepared_.before, outcome_.plan, outcome_.results);
  const auto results = telling(outcome_.results, prepared_.aside);
  const WatchRequest request{prepared_.before,  outcome_.plan, results,    prepared_.gpus,
                             prepared_.started, Clock::now(),  second_look};
  return watch_release(request, last_, tools, policy_, deadline_);
}

void FreeConduct::name_replacements() {
  replacements_ = find_replacements(prepared_.before, outcome_.plan, outcome_.results, last_.snapshot);
  for (const auto& each : replacements_) {
    const auto result = std::find_if(outcome_.results.begin(), outcome_.results.end(),
                                     [&](const StepResult& known) { return known.n == each.step; });
    if (result == outcome_.results.end()) continue;
    if (!result->detail.empty()) result->detail += "; ";
    result->detail += fmt::format("pid {} ({}) started it again as pid {}: stop it there", each.parent,
                                  each.parent_title, each.replacement.pid);
  }
}

void FreeConduct::conclude(std::vector<Release> releases) {
  explain_survivors(outcome_.results, outcome_.plan, last_.snapshot);
  name_late_kills(outcome_, prepared_.request);
  name_replacements();
  const bool left = holds_all_the_same(outcome_, last_.attribution) || !replacements_.empty() ||
                    (!interrupted_ && next_round(last_).ends_anybody());
  outcome_.verdict = judge_command(telling(outcome_.results, prepared_.aside), releases,
                                   left ? Remaining::somebody : Remaining::nobody);
  if (outcome_.verdict == Verdict::nothing_to_do && may_have_missed_all(last_.snapshot, prepared_.request.selection))
    outcome_.verdict = Verdict::cannot_tell;
  const bool claims_success = outcome_.verdict == Verdict::nothing_to_do || outcome_.verdict == Verdict::released;
  if (claims_success && may_hide_leftovers(releases, {&prepared_.before.snapshot, &last_.snapshot}))
    outcome_.verdict = Verdict::cannot_tell;
  leave_out_unselected(releases, prepared_.request.selection);
  outcome_.gpus = outcomes_of(std::move(releases));
  outcome_.visibility = last_.snapshot.visibility;
  outcome_.seconds = seconds_since(prepared_.started);
}

FreeReport FreeConduct::run() {
  const ShmOfEnded shm = ShmOfEnded::look(prepared_.request, prepared_.plan, prepared_.before.snapshot, policy_.scan);
  conclude(release_everything());
  if (!interrupted_) outcome_.shm = shm.clean(outcome_.plan, outcome_.results, tools_.log, tools_.wake);
  if (prepared_.plan.ends_anybody()) outcome_.record = tools_.log.outcome();
  return report_of(std::move(outcome_), last_, prepared_);
}

Verdict verdict_of_rehearsal(const PreparedFree& prepared, const std::vector<Release>& releases) {
  if (prepared.plan.ends_anybody()) return Verdict::holders_remain;
  const auto is_refused = [&](const Step& step) {
    return std::none_of(prepared.decided.begin(), prepared.decided.end(),
                        [&](const StepResult& known) { return known.n == step.n; });
  };
  if (std::any_of(prepared.plan.steps.begin(), prepared.plan.steps.end(), is_refused)) return Verdict::refused;
  const auto decided = telling(prepared.decided, prepared.aside);
  if (std::any_of(decided.begin(), decided.end(),
                  [](const StepResult& result) { return result.status == StepStatus::skipped; }))
    return Verdict::holders_remain;
  const bool unsure =
      is_unreadable(releases) || may_have_missed_all(prepared.before.snapshot, prepared.request.selection);
  return unsure ? Verdict::cannot_tell : Verdict::nothing_to_do;
}

/// --even for somebody whom nothing protects or nobody asked for: a number that was mistyped, or a --pid forgotten.
std::vector<std::string> needless_even(const PreparedFree& prepared) {
  std::vector<std::string> lines;
  for (const auto& wanted : prepared.request.even) {
    const auto* holder = prepared.before.attribution.find(wanted.pid);
    const auto* process = prepared.before.snapshot.find(wanted.pid);
    const bool is_protected = holder != nullptr
                                  ? holder->protection.has_value()
                                  : process == nullptr || protection_of(*process, prepared.before.snapshot);
    const auto& steps = prepared.plan.steps;
    const bool is_asked_for =
        std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.key.pid == wanted.pid; });
    if (!is_protected)
      lines.push_back(fmt::format("process {} is not protected: --even {} changes nothing", wanted.pid, wanted.pid));
    else if (!is_asked_for)
      lines.push_back(fmt::format("process {} is not asked for: --even {} alone changes nothing; {}", wanted.pid,
                                  wanted.pid,
                                  holder != nullptr ? fmt::format("add --pid {}", wanted.pid) : "it holds no GPU"));
  }
  return lines;
}

}  // namespace

std::chrono::milliseconds allowance_for(const PreparedFree& prepared) {
  return release_allowance(pinned_memory_of(prepared.before.snapshot, prepared.plan));
}

Result<PreparedFree> prepare_free(Look look, const std::vector<std::string>& gpu_words, FreeRequest request,
                                  Clock::time_point started) {
  if (!gpu_words.empty()) {
    auto gpus = resolve_gpus(gpu_words, look.scan.snapshot.gpus);
    if (!gpus) return gpus.error();
    request.selection.all_gpus = false;
    request.selection.gpus = std::move(*gpus);
  }
  if (!knows_own_chain(look.scan.snapshot))
    return Error{ErrorCode::io,
                 "which processes vacate itself was started by cannot be read, so nobody is ended: try again"};
  auto plan = plan_free(look.scan.snapshot, look.attribution, request);
  if (!plan) return plan.error();
  PreparedFree prepared{started,
                        std::move(request),
                        std::move(look.scan.pins),
                        {std::move(look.scan.snapshot), std::move(look.attribution)},
                        std::move(*plan),
                        {}};
  prepared.gpus = gpus_to_verify(prepared.before, prepared.plan, prepared.request.selection);
  prepared.unmatched =
      unmatched_words(prepared.before.snapshot, prepared.before.attribution, prepared.request.selection);
  for (auto& line : needless_even(prepared)) prepared.unmatched.push_back(std::move(line));
  return prepared;
}

void replace_plan(PreparedFree& prepared, Plan plan) {
  prepared.plan = std::move(plan);
  prepared.gpus = gpus_to_verify(prepared.before, prepared.plan, prepared.request.selection);
}

FreeReport carry_out(PreparedFree prepared, const FreeTools& tools, const Policy& policy) {
  return FreeConduct(std::move(prepared), tools, policy).run();
}

FreeReport rehearse(const PreparedFree& prepared, const Policy& policy) {
  const auto releases = releases_at(prepared, policy);
  Outcome outcome = outcome_of_look(prepared, releases);
  RecordingExecutor recorder;
  outcome.results = recorder.execute(prepared.plan, prepared.before.snapshot, Deadline::never());
  put_decided(outcome.results, prepared.decided);
  outcome.dry_run = true;
  outcome.verdict = verdict_of_rehearsal(prepared, releases);
  return report_of(std::move(outcome), prepared.before, prepared);
}

FreeReport decline(const PreparedFree& prepared, const Policy& policy) {
  Outcome outcome = outcome_of_look(prepared, releases_at(prepared, policy));
  outcome.verdict = Verdict::refused;
  return report_of(std::move(outcome), prepared.before, prepared);
}

}  // namespace vacate
