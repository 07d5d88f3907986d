// SPDX-License-Identifier: Apache-2.0
#include "attribute/standing.h"

#include <algorithm>

#include <fmt/format.h>

#include "attribute/parentage.h"
#include "attribute/proofs.h"
#include "attribute/testimony.h"

namespace vacate {
namespace {

std::string creator_sentence(const Process& process) {
  if (process.pgid == process.key.pid)
    return fmt::format("it leads a process group of its own and its parent {}, which started it, is alive",
                       process.ppid);
  return fmt::format("its parent {} is alive and in the same process group", process.ppid);
}

std::string leader_sentence(const Process& process) {
  if (process.pgid == process.key.pid) return "it leads its own process group and was not left to pid 1";
  return fmt::format("the leader of its process group, {}, is alive and an ancestor of it", process.pgid);
}

bool leads_group_or_session(const Process& process) noexcept {
  return process.pgid == process.key.pid || process.sid == process.key.pid;
}

}  // namespace

Standings::Standings(const Census& census, const Groups& groups, const Charges& charges, const Origins& origins)
    : census_(&census), groups_(&groups), charges_(&charges), origins_(&origins) {
  judge_owners();
  judge_servers();
  hear_origins();
  collect_proofs();
}

// Test 2, for the topmost members only: a parent inside the group is no owner.
void Standings::judge_owners() {
  for (std::size_t group = 0; group < groups_->count(); ++group) {
    for (const auto top : groups_->topmost(group)) {
      auto& verdict = verdicts_[top];
      const auto* process = census_->living(top);
      if (process == nullptr) continue;
      if (is_with_its_creator(*census_, *process)) {
        verdict.owned = creator_sentence(*process);
        verdict.owner = process->ppid;
      } else if (is_led_by_living_ancestor(*census_, *process)) {
        verdict.owned = leader_sentence(*process);
        if (process->pgid != top) verdict.owner = process->pgid;
      }
      if (verdict.owned) owned_by_.emplace(group, top);
      verdict.adopted = !verdict.owned && is_adopted(*census_, *process);
    }
  }
}

// Test 4, its last clause.
void Standings::judge_servers() {
  for (auto& [top, verdict] : verdicts_) {
    const auto* process = census_->living(top);
    if (process == nullptr || !leads_group_or_session(*process)) continue;
    const auto& members = groups_->members(*groups_->group_of(top));
    const bool listens = std::any_of(members.begin(), members.end(), [&](pid_t pid) {
      const auto* member = census_->living(pid);
      return member != nullptr && member->listens;
    });
    if (listens)
      verdict.set_up_to_stay =
          fmt::format("it leads its own {} and its group listens on a socket: a server set up to stay",
                      process->pgid == top ? "process group" : "session");
  }
}

// Tests 3 and 4, the clauses on services, containers and jobs: adopted or not.
void Standings::hear_origins() {
  for (auto& [top, verdict] : verdicts_) {
    const auto* process = census_->living(top);
    if (process == nullptr || verdict.owned || process->cgroup.empty()) continue;
    auto said = testimony_of(*census_, *groups_, *origins_, *process);
    if (said.left_by_service && verdict.set_up_to_stay) {
      // Some services leave servers of their users behind on purpose (KillMode=process): not enough against one.
      said.open.push_back(std::move(said.gone.front()));
      said.gone.erase(said.gone.begin());
    }
    verdict.may_be_main = said.may_be_main;
    verdict.proofs = std::move(said.gone);
    verdict.kept = std::move(said.lives);
    verdict.keeper = said.keeper;
    verdict.open = std::move(said.open);
  }
}

// Test 3. A pipe may be held by siblings that inherited the dead parent's end: proof spreads from the last child to the
// first (facts.md 3.7), so go round until nothing is added. Proofs only ever add up, hence one result whatever the
// order. What the service manager runs, or may run, is its own, whatever its pipes and its command line look like.
void Standings::collect_proofs() {
  for (auto& [top, verdict] : verdicts_) {
    const auto* process = census_->living(top);
    if (process == nullptr || !verdict.adopted || verdict.may_be_main) continue;
    if (auto proof = dead_named_parent_proof(*process)) verdict.proofs.push_back(std::move(*proof));
    if (auto proof = dead_opener_proof(*census_, *charges_, *process)) verdict.proofs.push_back(std::move(*proof));
  }
  std::map<pid_t, std::string> by_pipe;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [top, verdict] : verdicts_) {
      // A server that was set up to outlive its launcher has outlived a pipe to it too.
      if (!verdict.adopted || verdict.may_be_main || verdict.set_up_to_stay || by_pipe.contains(top)) continue;
      const auto group = *groups_->group_of(top);
      const auto proof = broken_pipe_proof(*census_, *census_->living(top),
                                           [&](pid_t other) { return counts_as_leftover(other, group); });
      if (!proof) continue;
      by_pipe.emplace(top, *proof);
      verdict.proofs.push_back(*proof);
      changed = true;
    }
  }
}

// A live topmost member makes its group live as a whole. Test 3 comes before test 4, so who has proof is not saved by
// listening. What a control group tells of one member says nothing for those of others that are proven: see
// kept_topmost().
std::optional<pid_t> Standings::live_topmost(std::size_t group) const {
  if (const auto owned = owned_by_.find(group); owned != owned_by_.end()) return owned->second;
  for (const auto top : groups_->topmost(group)) {
    const auto& verdict = verdicts_.at(top);
    if (verdict.proofs.empty() && verdict.set_up_to_stay) return top;
  }
  return std::nullopt;
}

// One whose service, job or container lives, and with it whoever of its group has no proof against it.
std::optional<pid_t> Standings::kept_topmost(std::size_t group) const {
  for (const auto top : groups_->topmost(group)) {
    const auto& verdict = verdicts_.at(top);
    if (verdict.proofs.empty() && verdict.kept) return top;
  }
  return std::nullopt;
}

// The topmost member whose verdict is that of `pid`, which lives.
pid_t Standings::judged_for(pid_t pid) const {
  const auto group = *groups_->group_of(pid);
  const auto top = groups_->topmost_of(pid);
  if (const auto live = live_topmost(group)) return *live;
  const auto& verdict = verdicts_.at(top);
  return verdict.proofs.empty() && !verdict.kept ? kept_topmost(group).value_or(top) : top;
}

// At the other end of a pipe. In its own group proof is enough; whether that group is live in the end is decided for
// all of it at once.
bool Standings::counts_as_leftover(pid_t pid, std::size_t seen_from_group) const {
  const auto group = groups_->group_of(pid);
  if (!group || is_owned(*group)) return false;
  if (verdicts_.at(groups_->topmost_of(pid)).proofs.empty()) return false;
  return *group == seen_from_group || !live_topmost(*group);
}

Standing Standings::of(pid_t pid) const {
  if (census_->living(pid) == nullptr) return Standing::foreign;
  if (live_topmost(*groups_->group_of(pid))) return Standing::live;
  const auto& verdict = verdicts_.at(judged_for(pid));
  if (!verdict.proofs.empty()) return Standing::leftover;
  return verdict.kept ? Standing::live : Standing::unsure;
}

std::vector<std::string> Standings::because(pid_t pid) const {
  if (census_->living(pid) == nullptr) return {"its process cannot be seen from here"};
  const auto judged = judged_for(pid);
  std::vector<std::string> sentences;
  if (judged == pid) return reasons_of_topmost(judged);
  const auto whole = groups_->topmost_of(pid) == judged ? "tree" : "group";
  sentences.push_back(fmt::format("it belongs to the {} of {}", whole, judged));
  for (const auto& sentence : reasons_of_topmost(judged)) sentences.push_back(fmt::format("{}: {}", judged, sentence));
  return sentences;
}

std::vector<std::string> Standings::reasons_of_topmost(pid_t top) const {
  const auto& verdict = verdicts_.at(top);
  const auto& process = *census_->living(top);
  if (verdict.owned) return {*verdict.owned};
  std::vector<std::string> sentences;
  if (verdict.adopted)
    sentences.push_back(fmt::format("its parent {} is in another process group: it was adopted", process.ppid));
  if (!verdict.proofs.empty()) {
    sentences.insert(sentences.end(), verdict.proofs.begin(), verdict.proofs.end());
  } else if (verdict.set_up_to_stay || verdict.kept) {
    if (verdict.kept) sentences.push_back(*verdict.kept);
    if (verdict.set_up_to_stay) sentences.push_back(*verdict.set_up_to_stay);
  } else {
    sentences.insert(sentences.end(), verdict.open.begin(), verdict.open.end());
    for (auto& sentence : what_would_decide(verdict, process)) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<std::string> Standings::what_would_decide(const TopmostVerdict& verdict, const Process& top) const {
  std::vector<std::string> sentences;
  if (!verdict.adopted) sentences.push_back(fmt::format("its parent {} cannot be seen from here", top.ppid));
  if (census_->living(top.pgid) == nullptr && top.pgid > 0)
    sentences.emplace_back("the leader of its process group is gone");
  if (!census_->snapshot().visibility.all_references) {
    sentences.push_back(
        fmt::format("not every process's descriptors could be read, which might prove that its owner died: {}",
                    census_->snapshot().caller.root ? "'vacate doctor' says why" : "run as root"));
  } else {
    sentences.emplace_back(
        "nothing proves that its owner died; a broken pipe of its birth, a dead parent that its command line "
        "names, or a client whose opener is dead would");
  }
  return sentences;
}

std::optional<pid_t> Standings::owner_of(std::size_t group) const {
  auto live = live_topmost(group);
  if (!live) live = kept_topmost(group);
  if (!live) return std::nullopt;
  const auto& verdict = verdicts_.at(*live);
  const auto owner = verdict.owner ? verdict.owner : verdict.keeper;
  const bool is_outside_group = owner && groups_->group_of(*owner) != group;
  return owner && (verdict.owner || is_outside_group) && census_->living(*owner) != nullptr ? owner : std::nullopt;
}

}  // namespace vacate
