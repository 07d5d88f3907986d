// SPDX-License-Identifier: Apache-2.0
// What is said of one process. Every figure names where it comes from; what could not be seen is said rather than left
// out.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "model/origin.h"
#include "report/format.h"
#include "report/why.h"
#include "report/why_words.h"

namespace vacate {
namespace {

/// Is this one that the scan could not look into? Then that nothing of it was found proves nothing.
bool is_out_of_sight(const Snapshot& snapshot, const Process& process, const Holder* holder) {
  return holder == nullptr && !process.kernel_thread && !snapshot.caller.root && !snapshot.visibility.all_references;
}

const Group* group_of(const WhyReport& report, const Holder& holder) {
  const auto& groups = report.attribution.groups;
  const auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.id == holder.group; });
  return at == groups.end() ? nullptr : &*at;
}

/// The group that a process without references is a relative in.
const Group* group_of_relative(const WhyReport& report, pid_t pid) {
  for (const auto& group : report.attribution.groups)
    for (const auto& relative : group.relatives)
      if (relative.key.pid == pid) return &group;
  return nullptr;
}

/// Others that keep a client of this one alive, sorted.
std::vector<pid_t> sharers(const Snapshot& snapshot, pid_t pid) {
  std::vector<pid_t> others;
  for (const auto& members : snapshot.shared_clients) {
    if (!std::binary_search(members.begin(), members.end(), pid)) continue;
    std::copy_if(members.begin(), members.end(), std::back_inserter(others), [&](pid_t other) { return other != pid; });
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  return others;
}

std::vector<std::string> charge_sentences(const Snapshot& snapshot, pid_t pid) {
  std::vector<std::string> sentences;
  for (const auto& charge : snapshot.charges) {
    if (charge.pid != pid) continue;
    std::string kinds;
    for (const auto kind : charge.kinds) kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", describe(kind));
    sentences.push_back(fmt::format("the driver charges {} on GPU {} to this number ({})", format_mib(charge.memory),
                                    charge.gpu, kinds.empty() ? "no list named" : kinds));
  }
  return sentences;
}

std::string reference_sentence(const Reference& reference, const Snapshot& snapshot) {
  const std::string node =
      reference.node < snapshot.nodes.size() ? snapshot.nodes[reference.node].path : "a node that has gone";
  const auto files = counted(reference.count, "open file", "open files");
  std::string sentence;
  switch (reference.kind) {
    case EvidenceKind::descriptor:
      sentence = fmt::format("{} of {}", files, node);
      break;
    case EvidenceKind::thread_descriptor:
      sentence = fmt::format("{} of {} in a thread that has a table of its own", files, node);
      break;
    case EvidenceKind::mapping:
      sentence = fmt::format("{} of {}", counted(reference.count, "mapping", "mappings"), node);
      break;
    case EvidenceKind::inherited_client:
      sentence = fmt::format("a client on {} that a dead process opened", node);
      break;
  }
  if (!reference.detail.empty()) sentence += fmt::format(" ({})", reference.detail);
  const bool pins = reference.node < snapshot.nodes.size() && pins_memory(snapshot.nodes[reference.node].role);
  return pins ? sentence : sentence + ", which pins no memory";
}

WhyPart evidence_part(const WhyReport& report, pid_t pid) {
  const Snapshot& snapshot = report.snapshot;
  WhyPart part{"evidence", {}};
  for (const auto& reference : snapshot.references)
    if (reference.pid == pid) part.sentences.push_back(reference_sentence(reference, snapshot));
  if (const auto* holder = report.attribution.find(pid))
    for (const auto& place : holder->gpus)
      for (const auto& fact : place.evidence)
        if (fact.kind == EvidenceKind::inherited_client)
          part.sentences.push_back(fmt::format("it keeps a client on GPU {} that a dead process opened{}{}",
                                               place.index, fact.detail.empty() ? "" : ": ", fact.detail));
  for (auto& sentence : charge_sentences(snapshot, pid)) part.sentences.push_back(std::move(sentence));
  for (const auto& hidden : snapshot.hidden_references)
    if (hidden.pid == pid)
      part.sentences.push_back(fmt::format("a hint, no evidence: {} on its descriptor {} ({}{}{})",
                                           counted(hidden.count, "file", "files"), hidden.fd, describe(hidden.kind),
                                           hidden.path.empty() ? "" : ", ", hidden.path));
  if (!part.sentences.empty()) return part;
  const auto* process = report.snapshot.find(pid);
  const bool is_hidden = process != nullptr && is_out_of_sight(report.snapshot, *process, report.attribution.find(pid));
  part.sentences.emplace_back(is_hidden ? "no reference to a GPU was seen, and the driver charges it nothing"
                                        : "no reference to a GPU, and the driver charges it nothing");
  return part;
}

std::string stuck_sentence(const Process& process) {
  std::string where =
      fmt::format("it waits in the kernel and cannot be interrupted, in code of: {}", describe(process.stuck_in));
  if (!process.kernel_frame.empty())
    where += fmt::format(" (frame {}{}{})", process.kernel_frame, process.kernel_module.empty() ? "" : ", module ",
                         process.kernel_module);
  if (!process.wchan.empty()) where += fmt::format(", sleeping in {}", process.wchan);
  return where + "; a signal counts only once it comes out of there";
}

WhyPart condition_part(const Process& process) {
  WhyPart part{"condition", {}};
  const auto say = [&](std::string_view sentence) { part.sentences.emplace_back(sentence); };
  switch (process.condition) {
    case Condition::running:
      break;
    case Condition::stopped:
      say("it is stopped: a TERM waits until it is continued");
      break;
    case Condition::traced:
      say("a debugger holds it: a TERM waits for the debugger");
      break;
    case Condition::frozen:
      say("its control group is frozen: nothing reaches it before it is thawed");
      break;
    case Condition::exiting:
      say("it is on its way out already: another signal changes nothing");
      break;
    case Condition::stuck:
      say(stuck_sentence(process));
      break;
    case Condition::zombie:
      say(fmt::format("it has ended and holds nothing; its parent {} has yet to take note of that", process.ppid));
      break;
    case Condition::zombie_leader:
      say("its first thread has ended, others live on and hold what it held");
      break;
    case Condition::dumping_core:
      say("it is writing a core dump: a KILL would cut that short");
      break;
  }
  return part;
}

WhyPart group_part(const WhyReport& report, const Group* group, pid_t pid) {
  WhyPart part{"group", {}};
  const auto shared = sharers(report.snapshot, pid);
  if (!shared.empty())
    part.sentences.push_back(
        fmt::format("it shares a client of the driver with {}: the memory comes back when the last "
                    "of them has let go",
                    why_pids(shared)));
  if (group == nullptr) return part;
  std::vector<pid_t> relatives;
  for (const auto& relative : group->relatives) relatives.push_back(relative.key.pid);
  const bool is_alone = group->holders.size() <= 1 && relatives.empty();
  if (!is_alone)
    part.sentences.push_back(
        fmt::format("it stands or falls with group {}: holders {}", group->id, why_pids(group->holders)) +
        (relatives.empty() ? "" : "; relatives that hold nothing: " + why_pids(relatives)));
  if (group->owner)
    part.sentences.push_back(
        fmt::format("owner: {} ({})", group->owner->pid, printable(group->owner_title, kLongestWhyTitle)));
  return part;
}

/// What became of the unit, container or job, as far as their own managers said.
void add_fate(const Snapshot& snapshot, const Origin& origin, WhyPart& part) {
  for (const auto& existence : snapshot.containers)
    if (origin.container == existence.id && existence.exists.known() && !*existence.exists)
      part.sentences.push_back(fmt::format("that container no longer exists ({})", existence.source));
  for (const auto& existence : snapshot.jobs)
    if (origin.slurm_job == existence.id && existence.exists.known() && !*existence.exists)
      part.sentences.push_back(fmt::format("that job has ended ({})", existence.source));
  for (const auto& unit : snapshot.services.units)
    if (origin.unit == unit.name)
      part.sentences.push_back(fmt::format("that unit is {} ({}), main process: {}", unit.active_state, unit.sub_state,
                                           unit.main_pid == 0 ? "none" : std::to_string(unit.main_pid)));
}

WhyPart origin_part(const WhyReport& report, const Process& process, const Holder* holder) {
  WhyPart part{"origin", {}};
  const auto say = [&](std::string_view what, const std::optional<std::string>& who) {
    if (who) part.sentences.push_back(fmt::format("{} {}", what, *who));
  };
  const Origin origin = parse_origin(process.cgroup);
  say("unit", origin.unit);
  if (origin.container)
    part.sentences.push_back(
        fmt::format("container {}{}{}", *origin.container, origin.runtime.empty() ? "" : " of ", origin.runtime));
  say("pod", origin.pod);
  if (origin.job) part.sentences.push_back(fmt::format("{} job {}", origin.job_system, *origin.job));
  say("login session", origin.session);
  add_fate(report.snapshot, origin, part);
  if (process.login_uid)
    part.sentences.push_back(
        fmt::format("started by somebody who logged in as {}",
                    process.login_user.empty() ? std::to_string(*process.login_uid) : process.login_user));
  if (holder != nullptr && holder->supervisor)
    part.sentences.push_back(
        fmt::format("looked after by {} {}{}{}", holder->supervisor->kind, holder->supervisor->name,
                    holder->supervisor->pid != 0 ? fmt::format(" (pid {})", holder->supervisor->pid) : "",
                    holder->supervisor->restarts == Restarts::yes ? ", which starts it again when it ends" : ""));
  return part;
}

std::vector<pid_t> also_ended(const Plan& plan, pid_t pid) {
  std::vector<pid_t> others;
  for (const auto& step : plan.steps)
    if (step.action != Action::refuse && step.key.pid != pid) others.push_back(step.key.pid);
  std::sort(others.begin(), others.end());
  return others;
}

const Step* step_for(const Plan& plan, pid_t pid) {
  const auto at =
      std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.key.pid == pid; });
  return at == plan.steps.end() ? nullptr : &*at;
}

/// A plan for this one alone, where what `free` does by default goes further.
std::optional<std::string> narrower(const WhySubject& subject, pid_t pid) {
  const auto* asked = step_for(subject.asked, pid);
  const auto* usual = step_for(subject.usual, pid);
  if (asked == nullptr || asked->action == Action::refuse || usual == nullptr || usual->action == Action::refuse)
    return std::nullopt;
  const auto others = also_ended(subject.asked, pid);
  if (others.size() >= also_ended(subject.usual, pid).size()) return std::nullopt;
  return fmt::format("'vacate free --pid {}' ends {}", pid,
                     others.empty() ? "it alone" : fmt::format("it and these only: {}", why_pids(others)));
}

std::string refusal_text(const Step& step) {
  return fmt::format("{}{}{}", step.rule, step.because.empty() ? "" : ": ",
                     step.because.empty() ? "" : step.because[0]);
}

WhyPart frees_part(const WhySubject& subject, const Holder& holder) {
  const pid_t pid = holder.key.pid;
  WhyPart part{"frees", {}};
  const auto* usual = step_for(subject.usual, pid);
  const auto* asked = step_for(subject.asked, pid);
  if (usual != nullptr && usual->action != Action::refuse) {
    part.sentences.emplace_back("'vacate free' ends it, and proves that the memory came back");
  } else {
    part.sentences.emplace_back(usual == nullptr ? "'vacate free' leaves it alone"
                                                 : "'vacate free' refuses it: " + refusal_text(*usual));
    if (asked != nullptr && asked->action != Action::refuse)
      part.sentences.push_back(fmt::format("'vacate free --pid {}' ends it all the same", to_string(holder.key)));
    if (asked != nullptr && asked->action == Action::refuse)
      part.sentences.push_back(fmt::format("'vacate free --pid {}' refuses: {}", pid, refusal_text(*asked)));
    if (!subject.asked_why_not.empty()) part.sentences.push_back(subject.asked_why_not);
  }
  const Plan& plan = usual != nullptr && usual->action != Action::refuse ? subject.usual : subject.asked;
  const bool ends =
      (usual != nullptr && usual->action != Action::refuse) || (asked != nullptr && asked->action != Action::refuse);
  if (const auto others = also_ended(plan, pid); ends && !others.empty())
    part.sentences.push_back(fmt::format("that plan ends these as well: {}", why_pids(others)));
  if (auto command = narrower(subject, pid)) part.sentences.push_back(std::move(*command));
  if (usual != nullptr && usual->action == Action::terminate_client)
    part.sentences.emplace_back(
        "its MPS control daemon is asked to end its contexts first, and it gets no signal while it is a client");
  // Of a client of MPS the refusal says what reaches it.
  const bool is_client = holder.protection && holder.protection->rule == "mps-client";
  if (holder.protection && !holder.protection->absolute && !is_client)
    part.sentences.push_back(fmt::format("it is protected: only '--pid {} --even {}' reaches it", pid, pid));
  return part;
}

WhyPart futile_part(const WhyReport& report, const Process& process, const Holder* holder) {
  WhyPart part{"does-not-free", {}};
  const auto say = [&](std::string sentence) { part.sentences.push_back(std::move(sentence)); };
  if (is_out_of_sight(report.snapshot, process, holder)) return part;
  if (holder == nullptr) {
    say("ending it frees no GPU memory: it holds none");
    return part;
  }
  if (holder->role == HolderRole::files) say("ending it frees no memory: it has device files open and no context");
  if (const auto shared = sharers(report.snapshot, process.key.pid); !shared.empty())
    say(fmt::format("ending it alone frees nothing while {} keep the same client", why_pids(shared)));
  const Origin origin = parse_origin(process.cgroup);
  for (const auto& unit : report.snapshot.services.units)
    if (origin.unit == unit.name && !unit.restart.empty() && unit.restart != "no" && unit.active_state == "active")
      say(fmt::format(
          "ending it helps for a moment only: {} starts it again (Restart={}); 'systemctl stop {}' does help",
          unit.name, unit.restart, unit.name));
  if (holder->supervisor && holder->supervisor->restarts == Restarts::yes && holder->supervisor->kind != "unit")
    say(fmt::format("its supervisor starts it again: end it there ({} {})", holder->supervisor->kind,
                    holder->supervisor->name));
  if (process.condition == Condition::stuck)
    say("no signal helps before the kernel lets it go; if it never does, only a reset or a reboot does");
  if (process.condition == Condition::frozen) say("a TERM does nothing before the control group is thawed");
  return part;
}

WhyPart subject_part(const WhyReport& report, const Process& process, const Holder* holder) {
  WhyPart part{"subject", {}};
  std::string line = fmt::format("pid {}, key {}", process.key.pid, to_string(process.key));
  if (!process.user.empty()) line += fmt::format(", user {}", process.user);
  if (process.exe.known()) line += fmt::format(", runs {}", *process.exe);
  if (process.started > 0)
    line += fmt::format(", started {} before", format_age(report.snapshot.time - process.started));
  part.sentences.push_back(std::move(line));
  part.sentences.push_back("it calls itself " + why_title(process));
  if (is_out_of_sight(report.snapshot, process, holder)) {
    part.sentences.emplace_back("what it holds cannot be seen: run as root");
  } else if (holder == nullptr) {
    part.sentences.emplace_back(process.kernel_thread ? "it is a thread of the kernel, which vacate never touches"
                                                      : "it is no holder: nothing of it pins a GPU");
  } else {
    part.sentences.push_back(fmt::format("it is a holder, role: {}", describe(holder->role)));
  }
  return part;
}

/// Nobody of that number, or of that start, was seen.
std::vector<WhyPart> explain_unseen(const WhyReport& report, const ProcessSelector& wanted) {
  const auto* namesake = report.snapshot.find(wanted.pid);
  WhyPart part{"subject", {}};
  if (namesake != nullptr) {
    part.sentences.push_back(fmt::format("pid {} is another process now: {}, which calls itself {}", wanted.pid,
                                         to_string(namesake->key), why_title(*namesake)));
    return {std::move(part)};
  }
  part.sentences.push_back(fmt::format("no process {} was seen", wanted.pid));
  const auto& visibility = report.snapshot.visibility;
  if (visibility.complete()) {
    part.sentences.emplace_back("nothing is hidden from this scan: there is none");
  } else {
    part.sentences.emplace_back("it may be where this scan could not look:");
    for (const auto& spot : visibility.blind_spots)
      part.sentences.push_back(fmt::format("not seen: {} ({})", spot.detail, spot.code));
  }
  WhyPart charges{"evidence", charge_sentences(report.snapshot, wanted.pid)};
  if (charges.sentences.empty()) charges.sentences.emplace_back("the driver charges nothing to this number");
  for (const auto& charge : report.attribution.charged_to_nobody)
    if (charge.driver_pid == wanted.pid) {
      charges.sentences.push_back(fmt::format("GPU {}: {}", charge.gpu, charge.detail));
      for (const auto pid : charge.inheritors)
        charges.sentences.push_back("what it opened is kept by " + why_name(report.snapshot, pid));
    }
  return {std::move(part), std::move(charges)};
}

/// One that holds nothing, in a group that does.
WhyPart relative_part(const Group& group, pid_t pid) {
  WhyPart part{"standing", {}};
  for (const auto& relative : group.relatives) {
    if (relative.key.pid != pid) continue;
    part.sentences.emplace_back(describe(relative.standing));
    part.sentences.push_back(fmt::format("it holds nothing itself, and belongs to group {} of holders {}", group.id,
                                         why_pids(group.holders)));
    if (relative.resource_tracker)
      part.sentences.emplace_back("Python's resource tracker: it ends by itself when those that it serves have ended");
    else if (relative.standing == Standing::leftover)
      part.sentences.emplace_back("it is ended together with them");
  }
  return part;
}

WhyPart standing_part(const Holder& holder) {
  WhyPart part{"standing", {std::string(describe(holder.standing))}};
  part.sentences.insert(part.sentences.end(), holder.because.begin(), holder.because.end());
  return part;
}

}  // namespace

std::vector<WhyPart> explain_process(const WhyReport& report, const WhySubject& subject) {
  const auto* process = report.snapshot.find(subject.process->pid);
  if (process == nullptr || !subject.process->matches(process->key)) return explain_unseen(report, *subject.process);
  const auto* holder = report.attribution.find(process->key.pid);
  const auto* group = holder != nullptr ? group_of(report, *holder) : group_of_relative(report, process->key.pid);
  std::vector<WhyPart> parts = {subject_part(report, *process, holder), evidence_part(report, process->key.pid),
                                condition_part(*process), group_part(report, group, process->key.pid),
                                origin_part(report, *process, holder)};
  if (holder != nullptr) {
    parts.push_back(standing_part(*holder));
  } else if (group != nullptr) {
    parts.push_back(relative_part(*group, process->key.pid));
  }
  const auto& protection = holder != nullptr ? holder->protection : subject.protection;
  WhyPart rules{"protection", {}};
  if (protection)
    rules.sentences.push_back(fmt::format("{}: {}{}{}", protection->rule, protection->detail,
                                          protection->source.empty() ? "" : "; rule of ", protection->source));
  if (holder != nullptr)
    rules.sentences.insert(rules.sentences.end(), holder->terms.because.begin(), holder->terms.because.end());
  parts.push_back(std::move(rules));
  if (holder != nullptr) parts.push_back(frees_part(subject, *holder));
  parts.push_back(futile_part(report, *process, holder));
  std::erase_if(parts, [](const WhyPart& part) { return part.sentences.empty(); });
  return parts;
}

}  // namespace vacate
