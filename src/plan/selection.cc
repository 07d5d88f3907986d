// SPDX-License-Identifier: Apache-2.0
#include "plan/selection.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "model/origin.h"
#include "plan/mps.h"
#include "plan/narrowing.h"
#include "plan/wording.h"

namespace vacate {
namespace {

bool names(const std::vector<ProcessSelector>& selectors, const ProcessKey& key) {
  return std::any_of(selectors.begin(), selectors.end(), [&](const ProcessSelector& s) { return s.matches(key); });
}

// A GPU that cannot be asked has no list of contexts; what has its node open may have memory there.
bool lists_contexts(const Snapshot& snapshot, unsigned index) {
  return std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(), [&](const Gpu& gpu) {
    return gpu.index == index && (gpu.state == GpuState::ok || gpu.state == GpuState::reset_required);
  });
}

bool has_inherited(const HolderOnGpu& on_gpu) {
  return std::any_of(on_gpu.evidence.begin(), on_gpu.evidence.end(),
                     [](const HolderEvidence& evidence) { return evidence.kind == EvidenceKind::inherited_client; });
}

/// Whose work it is, if not the caller's, and the option that names them: "--job 17, or ".
struct Theirs {
  std::string what;
  std::string option;
};

// The caller's own are those of the user that he is and, for root, of the user that he logged in as.
bool is_own_user(uid_t uid, const Snapshot& snapshot) {
  const auto& caller = snapshot.caller;
  const auto* self = snapshot.find(caller.self.pid);
  return uid == caller.uid || (caller.root && self != nullptr && uid == self->login_uid);
}

Origin origin_of(const Process* process) {
  return process == nullptr || process->cgroup.empty() ? Origin{} : parse_origin(process->cgroup);
}

bool is_same_work(const Process* a, const Process* b) {
  if (a == nullptr || b == nullptr || !a->uid.known() || !b->uid.known() || *a->uid != *b->uid) return false;
  const auto of_a = origin_of(a);
  const auto of_b = origin_of(b);
  return of_a.container == of_b.container && of_a.inner_container == of_b.inner_container && of_a.pod == of_b.pod &&
         of_a.job == of_b.job;
}

std::optional<Theirs> whose_else(const Process* process, const Snapshot& snapshot) {
  static constexpr std::size_t kLongest = 96;
  if (process == nullptr || !process->uid.known()) return Theirs{"whose it is could not be read", ""};
  const auto mine = origin_of(snapshot.find(snapshot.caller.self.pid));
  const auto origin = origin_of(process);
  const auto other = [](const std::optional<std::string>& theirs, const std::optional<std::string>& own) {
    return theirs && theirs != own;
  };
  for (const auto& [theirs, own] :
       {std::pair(origin.container, mine.container), std::pair(origin.inner_container, mine.inner_container)})
    if (other(theirs, own))
      return Theirs{"it is in container " + printable(*theirs, kLongest),
                    "--container " + printable(*theirs, kLongest) + ", or "};
  if (mine.container && !origin.container) return Theirs{"it is outside of the caller's container", ""};
  if (other(origin.pod, mine.pod)) return Theirs{"it is in pod " + printable(*origin.pod, kLongest), ""};
  if (other(origin.job, mine.job))
    return Theirs{"it is part of batch job " + printable(*origin.job, kLongest),
                  "--job " + printable(*origin.job, kLongest) + ", or "};
  if (!is_own_user(*process->uid, snapshot)) {
    const auto user = process->user.empty() ? std::to_string(*process->uid) : printable(process->user, kLongest);
    return Theirs{"it belongs to user " + user, "--user " + user + ", or "};
  }
  return std::nullopt;
}

}  // namespace

std::vector<unsigned> pinned_gpus(const Snapshot& snapshot, const Holder& holder) {
  std::vector<unsigned> pinned;
  if (!holder.pins_memory()) return pinned;
  for (const auto& on_gpu : holder.gpus) {
    if (on_gpu.has_context || holder.role != HolderRole::context || has_inherited(on_gpu) ||
        !lists_contexts(snapshot, on_gpu.index))
      pinned.push_back(on_gpu.index);
  }
  return pinned;
}

bool is_restarted_by_unit(const Member& member) {
  const auto* supervisor = member.supervisor();
  return supervisor != nullptr && supervisor->kind == "unit" && supervisor->restarts == Restarts::yes;
}

Result<void> Selector::check(const Attribution& attribution) const {
  for (const auto index : request_->selection.gpus) {
    const auto& gpus = snapshot_->gpus;
    if (std::none_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.index == index; }))
      return Error{ErrorCode::malformed, fmt::format("there is no GPU {}; `vacate status` lists them", index)};
  }
  if (auto checked = check_narrowing(*snapshot_, request_->selection); !checked) return checked;
  for (const auto& wanted : request_->selection.pids) {
    if (auto checked = check_pid(wanted, attribution); !checked) return checked;
    if (attribution.find(wanted.pid) != nullptr) continue;
    if (cannot_see_others())
      return Error{ErrorCode::denied, fmt::format("what process {} holds cannot be seen: run as root", wanted.pid)};
    return Error{ErrorCode::malformed, fmt::format("process {} holds no GPU", wanted.pid)};
  }
  for (const auto& wanted : request_->even) {
    if (auto checked = check_pid(wanted, attribution); !checked) return checked;
  }
  return {};
}

Result<void> Selector::check_pid(const ProcessSelector& wanted, const Attribution& attribution) const {
  const auto* holder = attribution.find(wanted.pid);
  const auto* process = snapshot_->find(wanted.pid);
  const bool is_missing = holder == nullptr && (process == nullptr || is_gone(*process));
  if (is_missing && cannot_see_others())
    return Error{ErrorCode::denied, fmt::format("process {} cannot be seen: run as root", wanted.pid)};
  if (is_missing)
    return Error{ErrorCode::malformed, fmt::format("process {} does not exist{}", wanted.pid, namesake(wanted.pid))};
  const auto& key = holder != nullptr ? holder->key : process->key;
  if (!wanted.matches(key)) {
    return Error{ErrorCode::malformed, fmt::format("process {} is another one than {}@{}: it is {}", wanted.pid,
                                                   wanted.pid, wanted.start_ticks.value_or(0), to_string(key))};
  }
  return {};
}

// Whoever has that number in a pid namespace of its own is not who was named, but may be who was meant.
std::string Selector::namesake(pid_t pid) const {
  for (const auto& process : snapshot_->processes) {
    if (process.ns_pids.size() > 1 && process.ns_pids.back() == pid)
      return fmt::format(" here; process {} is {} in its own pid namespace", process.key.pid, pid);
  }
  return "";
}

bool Selector::cannot_see_others() const { return !snapshot_->caller.root && !snapshot_->visibility.all_references; }

bool Selector::is_named(const ProcessKey& key) const { return names(request_->selection.pids, key); }

bool Selector::covers(unsigned gpu) const {
  const auto& selection = request_->selection;
  return selection.all_gpus || std::find(selection.gpus.begin(), selection.gpus.end(), gpu) != selection.gpus.end();
}

std::vector<unsigned> Selector::pinned_outside(const Holder& holder) const {
  auto pinned = pinned_gpus(*snapshot_, holder);
  std::erase_if(pinned, [&](unsigned gpu) { return covers(gpu); });
  return pinned;
}

bool Selector::has_selected_gpu(const Holder& holder) const {
  if (request_->selection.all_gpus) return true;
  if (!holder.pins_memory())
    return std::any_of(holder.gpus.begin(), holder.gpus.end(),
                       [&](const HolderOnGpu& on_gpu) { return covers(on_gpu.index); });
  const auto pinned = pinned_gpus(*snapshot_, holder);
  return std::any_of(pinned.begin(), pinned.end(), [&](unsigned gpu) { return covers(gpu); });
}

bool Selector::is_within(pid_t pid) const { return vacate::is_within(*snapshot_, pid, request_->selection); }

bool Selector::is_in_scope(const Holder& holder) const {
  if (!request_->selection.pids.empty() || !holder.pins_memory()) return false;
  switch (holder.standing) {
    case Standing::leftover:
      return true;
    // What an importer keeps is inferred from what is missing elsewhere: not enough for one that somebody may own.
    case Standing::unsure:
      return request_->scope != Scope::leftovers && holder.role != HolderRole::importer;
    case Standing::live:
      return request_->scope == Scope::all && holder.role != HolderRole::importer;
    case Standing::foreign:
      return false;
  }
  return false;
}

// Who is it that a user's own manager would start again? That is on no bus that vacate can ask.
std::optional<Refusal> Selector::users_unit(const Holder& holder) const {
  const bool is_users = holder.supervisor && holder.supervisor->kind == "user-unit";
  if (!request_->stop_units || !is_users || holder.standing == Standing::leftover) return std::nullopt;
  return Refusal{"user-unit",
                 fmt::format("its service is one of its user's own manager, which vacate cannot ask; as that user: "
                             "systemctl --user stop {}",
                             holder.supervisor->name)};
}

// A client of MPS is not signalled, whatever is asked, while anybody lives whom its end could harm.
std::optional<Refusal> Selector::of_mps(const Member& member) const {
  const auto way = mps_way(*snapshot_, member, *request_);
  const auto* why = std::get_if<std::string>(&way);
  if (why == nullptr) return std::nullopt;
  const bool harms = may_have_mps_server(*snapshot_);
  if (!harms && names(request_->even, member.key())) return std::nullopt;
  return Refusal{"mps-client", fmt::format("protected: {}; {}{}", member.protection()->detail, *why,
                                           harms ? ""
                                                 : fmt::format("; --even {} to end it all the same, for no MPS "
                                                               "server is left",
                                                               member.key().pid))};
}

// The server goes after its clients, never before them.
std::optional<Refusal> Selector::with_clients(const Member& member) const {
  const auto* process = snapshot_->find(member.key().pid);
  if (process == nullptr || !member.protection()) return std::nullopt;
  const auto left = clients_left_by(*snapshot_, *process, *request_);
  if (left.empty()) return std::nullopt;
  return Refusal{"mps",
                 fmt::format("its clients would be left undefined, end them first or with it: {}", list_of(left))};
}

pid_t Selector::mps_server_of(const Member& member) const {
  if (!is_mps_client(member)) return 0;
  const auto way = mps_way(*snapshot_, member, *request_);
  const auto* server = std::get_if<pid_t>(&way);
  return server != nullptr ? *server : 0;
}

// Who widens with --all or --unsure means what is before his eyes. What others are at work with he has to name.
std::optional<Refusal> Selector::consent_lacking(const Member& member, const Process* process) const {
  const auto& selection = request_->selection;
  const bool is_named =
      !selection.pids.empty() || !selection.users.empty() || !selection.containers.empty() || !selection.jobs.empty();
  if (member.standing() == Standing::leftover || request_->scope == Scope::leftovers || is_named) return std::nullopt;
  const auto theirs = whose_else(process, *snapshot_);
  if (!theirs) return std::nullopt;
  const auto scope = request_->scope == Scope::all ? "--all" : "--unsure";
  return Refusal{"not-your-own",
                 fmt::format("{}, and {} alone ends nothing that others are at work with: add {}--pid {}", theirs->what,
                             scope, theirs->option, member.key().pid)};
}

// Who names one process does not mean what others are at work with below it.
bool Selector::may_come_along(const Holder& other, const Holder& with) const {
  const auto& selection = request_->selection;
  if (other.standing == Standing::leftover || is_named(other.key)) return true;
  if (!selection.users.empty() || !selection.containers.empty() || !selection.jobs.empty()) return true;  // is_within()
  const auto* process = snapshot_->find(other.key.pid);
  return !whose_else(process, *snapshot_) || is_same_work(process, snapshot_->find(with.key.pid));
}

std::optional<Refusal> Selector::obstacle(const Member& member) const {
  if (member.standing() == Standing::foreign)
    return Refusal{"foreign", "it cannot be seen from here whose it is; run vacate where it can be"};
  if (is_mps_client(member)) {
    if (auto refusal = of_mps(member)) return refusal;
  } else if (const auto& protection = member.protection()) {
    const auto& why = protection->detail;
    if (protection->absolute) return Refusal{protection->rule, fmt::format("never ended, whatever is asked: {}", why)};
    if (!names(request_->even, member.key()))
      return Refusal{protection->rule,
                     fmt::format("protected: {}; --even {} to end it all the same", why, member.key().pid)};
  }
  if (auto refusal = with_clients(member)) return refusal;
  const auto& caller = snapshot_->caller;
  const auto* process = snapshot_->find(member.key().pid);
  const bool is_mine = process != nullptr && process->uid.known() && *process->uid == caller.uid;
  if (!caller.root && !is_mine) return Refusal{"not-yours", "it belongs to another user: run as root"};
  if (auto refusal = consent_lacking(member, process)) return refusal;
  // Ending what a service starts again at once frees nothing for longer than a moment (design.md, rule 5).
  if (!is_restarted_by_unit(member)) return std::nullopt;
  return Refusal{"restarting-unit",
                 fmt::format("its service would start it again; stop that instead: systemctl stop {} (--stop-units "
                             "does it)",
                             member.supervisor()->name)};
}

// Whether the service of somebody that it would start again can be stopped is a question about the whole of that
// service: units.h.
std::optional<Refusal> Selector::refusal_of(const Holder& holder) const {
  auto refusal = obstacle({&holder, nullptr});
  const bool is_for_units = request_->stop_units && is_restarted_by_unit({&holder, nullptr});
  if (refusal && !(is_for_units && refusal->rule == "restarting-unit")) return refusal;
  return users_unit(holder);
}

Choice Selector::choose(const Holder& holder) const {
  const bool named = is_named(holder.key);
  if (!(named || is_in_scope(holder)) || !has_selected_gpu(holder) || !is_within(holder.key.pid)) return {};
  if (auto refusal = refusal_of(holder)) return {false, "", std::move(refusal)};
  const auto outside = pinned_outside(holder);
  if (!named && holder.standing != Standing::leftover && !outside.empty()) {
    return {
        false, "",
        Refusal{"gpu-list", fmt::format("it has memory on GPU {} too, which was not selected, and a process ends as a "
                                        "whole: add that to --gpu, or name it with --pid {}",
                                        fmt::join(outside, ", "), holder.key.pid)}};
  }
  return {true, named ? "named" : std::string(describe(holder.standing)), std::nullopt};
}

}  // namespace vacate
