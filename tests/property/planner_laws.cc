// SPDX-License-Identifier: Apache-2.0
// The planner's laws (design.md 8), on machines made at random: trees that died in part, shared clients, daemons,
// monitors, hidden and garbled facts. A law holds for every one of them, whatever the story.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include <rapidcheck.h>

#include "any_free.h"
#include "attribute/attribute.h"
#include "laws.h"
#include "plan/agreement.h"
#include "plan/plan_free.h"

namespace {

using namespace vacate;
using vacate::testing::any_policy;
using vacate::testing::any_request;
using vacate::testing::any_rule;
using vacate::testing::any_scan;
using vacate::testing::below;
using vacate::testing::one_in;

struct Stage {
  Snapshot snapshot = any_scan();
  Policy policy = any_policy();
  Attribution attribution = attribute_holders(snapshot, policy);
  FreeRequest request = any_request(attribution);
  Plan plan = plan_free(snapshot, attribution, request).value_or(Plan{});
};

/// Whom the plan has end, in whatever way.
std::set<pid_t> to_end(const Plan& plan) {
  std::set<pid_t> pids;
  for (const auto& step : plan.steps) {
    if (is_ending(step.action)) pids.insert(step.key.pid);
  }
  return pids;
}

const Relative* relative_of(const Attribution& attribution, pid_t pid) {
  for (const auto& group : attribution.groups) {
    for (const auto& relative : group.relatives) {
      if (relative.key.pid == pid) return &relative;
    }
  }
  return nullptr;
}

std::optional<Protection> protection_in(const Attribution& attribution, pid_t pid) {
  if (const auto* holder = attribution.find(pid)) return holder->protection;
  const auto* relative = relative_of(attribution, pid);
  return relative != nullptr ? relative->protection : std::nullopt;
}

// --- laws

void never_own_chain_nor_pid_one_nor_kernel_threads() {
  const Stage s;
  const auto& caller = s.snapshot.caller;
  for (const auto pid : to_end(s.plan)) {
    RC_ASSERT(pid != caller.self.pid && pid != 1 && pid != caller.session_leader);
    RC_ASSERT(std::find(caller.ancestors.begin(), caller.ancestors.end(), pid) == caller.ancestors.end());
    RC_ASSERT(!s.snapshot.find(pid)->kernel_thread);
  }
}

void protected_ones_only_by_name() {
  const Stage s;
  for (const auto pid : to_end(s.plan)) {
    const auto protection = protection_in(s.attribution, pid);
    if (!protection) continue;
    RC_ASSERT(!protection->absolute);
    RC_ASSERT(std::any_of(s.request.even.begin(), s.request.even.end(),
                          [&, who = pid](const auto& e) { return e.pid == who; }));
  }
}

/// Does a sentence of the step name a node that its process refers to in this very scan?
bool cites(const Step& step, const Snapshot& scan) {
  return std::any_of(scan.references.begin(), scan.references.end(), [&](const Reference& reference) {
    const auto& path = scan.nodes[reference.node].path;
    return reference.pid == step.key.pid &&
           std::any_of(step.because.begin(), step.because.end(),
                       [&](const std::string& sentence) { return sentence.find(path) != std::string::npos; });
  });
}

void every_signal_is_for_a_holder_or_its_relative_and_cites_evidence() {
  const Stage s;
  std::set<std::size_t> groups;
  for (const auto& step : s.plan.steps) {
    if (is_ending(step.action) && step.holder) groups.insert(s.attribution.find(step.key.pid)->group);
  }
  for (const auto& step : s.plan.steps) {
    RC_ASSERT(!step.because.empty());
    RC_ASSERT(!step.rule.empty());
    RC_ASSERT(step.key == s.snapshot.find(step.key.pid)->key || step.action == Action::refuse);
    if (step.holder) RC_ASSERT(cites(step, s.snapshot));
    if (step.holder) continue;
    RC_ASSERT(std::any_of(groups.begin(), groups.end(), [&](std::size_t id) {
      const auto& relatives = s.attribution.groups[id - 1].relatives;
      return std::any_of(relatives.begin(), relatives.end(), [&](const Relative& r) { return r.key == step.key; });
    }));
  }
}

void only_leftovers_unless_more_is_asked_for() {
  const Stage s;
  if (s.request.scope != Scope::leftovers || !s.request.selection.pids.empty()) return;
  for (const auto pid : to_end(s.plan)) {
    const auto* holder = s.attribution.find(pid);
    RC_ASSERT((holder != nullptr ? holder->standing : relative_of(s.attribution, pid)->standing) == Standing::leftover);
  }
}

/// The caller's machine of its own knows no containers or jobs here: users are what is told apart.
void live_work_of_others_is_never_ended_unnamed() {
  const Stage s;
  if (!s.request.selection.pids.empty() || !s.request.selection.users.empty()) return;
  for (const auto pid : to_end(s.plan)) {
    const auto* holder = s.attribution.find(pid);
    const auto standing = holder != nullptr ? holder->standing : relative_of(s.attribution, pid)->standing;
    if (standing == Standing::leftover) continue;
    const auto& uid = s.snapshot.find(pid)->uid;
    RC_ASSERT(uid.known());
    const auto* self = s.snapshot.find(s.snapshot.caller.self.pid);
    RC_ASSERT(*uid == s.snapshot.caller.uid || (s.snapshot.caller.root && *uid == self->login_uid));
  }
}

void a_plan_agrees_with_itself_whole() {
  const Stage s;
  for (const auto newcomers : {Newcomers::named, Newcomers::left_to_rounds}) {
    const auto agreement = agree(s.plan, s.plan, s.snapshot, s.attribution, newcomers);
    RC_ASSERT(agreement.plan == s.plan);
    RC_ASSERT(agreement.decided.empty());
  }
}

/// Whatever file it is: nobody is signalled whom a fresh plan does not have, on no softer terms; each process has one
/// step.
void a_reviewed_plan_only_narrows() {
  const Stage s;
  auto reviewed = s.plan;
  for (auto& step : reviewed.steps) {
    if (one_in(4)) step.key.start_ticks += 1;
    if (one_in(4)) step.action = static_cast<Action>(below(4));
    if (one_in(4)) step.terms.term_only = true;
  }
  std::erase_if(reviewed.steps, [](const Step&) { return one_in(4); });
  for (const auto& process : s.snapshot.processes) {
    if (!one_in(8)) continue;
    const auto is_in = [&](const Step& step) { return step.key.pid == process.key.pid; };
    if (std::any_of(reviewed.steps.begin(), reviewed.steps.end(), is_in)) continue;
    Step step;
    step.key = process.key;
    reviewed.steps.push_back(step);
  }
  const auto agreement = agree(reviewed, s.plan, s.snapshot, s.attribution, Newcomers::named);
  std::set<pid_t> pids;
  for (const auto& step : agreement.plan.steps) {
    RC_ASSERT(pids.insert(step.key.pid).second || step.action == Action::refuse);
    if (!is_ending(step.action)) continue;
    const auto at = std::find_if(s.plan.steps.begin(), s.plan.steps.end(), [&](const Step& fresh) {
      return fresh.key == step.key && fresh.action == step.action;
    });
    RC_ASSERT(at != s.plan.steps.end());
    RC_ASSERT(step.terms.term_only || !at->terms.term_only);
  }
}

void files_alone_are_never_ended_unasked() {
  const Stage s;
  const auto ended = to_end(s.plan);
  for (const auto pid : ended) {
    const auto* holder = s.attribution.find(pid);
    if (holder == nullptr || holder->pins_memory() || !s.request.selection.pids.empty()) continue;
    RC_ASSERT(std::any_of(ended.begin(), ended.end(), [&](pid_t other) {
      const auto* beside = s.attribution.find(other);
      return beside != nullptr && beside->pins_memory() && beside->group == holder->group;
    }));
  }
}

void adding_a_protection_never_adds_a_step() {
  const Stage s;
  RC_PRE(!s.attribution.holders.empty());
  auto stricter = s.attribution;
  auto& holder = stricter.holders[static_cast<std::size_t>(below(static_cast<int>(stricter.holders.size())))];
  holder.protection = Protection{"more", "a policy says so", true};
  const auto plan = plan_free(s.snapshot, stricter, s.request).value_or(Plan{});
  const auto before = to_end(s.plan), after = to_end(plan);
  RC_ASSERT(!after.contains(holder.key.pid));
  // A tree may be asked from further below when its root's plan falls apart, but nobody new is asked.
  RC_ASSERT(std::includes(before.begin(), before.end(), after.begin(), after.end()));
}

void adding_a_policy_rule_never_adds_a_signal() {
  const Stage s;
  auto stricter = s.policy;
  stricter.rules.push_back(any_rule());
  const auto attribution = attribute_holders(s.snapshot, stricter);
  const auto plan = plan_free(s.snapshot, attribution, s.request).value_or(Plan{});
  const auto before = to_end(s.plan), after = to_end(plan);
  RC_ASSERT(std::includes(before.begin(), before.end(), after.begin(), after.end()));
  for (const auto& step : plan.steps) {
    if (!is_ending(step.action)) continue;
    const auto old =
        std::find_if(s.plan.steps.begin(), s.plan.steps.end(), [&](const Step& each) { return each.key == step.key; });
    RC_ASSERT(step.terms.term_only || !old->terms.term_only);
    if (old->terms.grace) RC_ASSERT(step.terms.grace.value_or(std::chrono::milliseconds(0)) >= *old->terms.grace);
  }
  for (std::size_t i = 0; i < attribution.holders.size(); ++i) {
    const auto& then = s.attribution.holders[i];
    const auto& now = attribution.holders[i];
    RC_ASSERT(now.standing == then.standing && now.role == then.role);
    RC_ASSERT(!then.protection || now.protection);
  }
}

void what_is_forbidden_is_never_asked() {
  const Stage s;
  for (const auto pid : to_end(s.plan)) {
    for (const auto& rule : s.policy.rules) {
      const auto* process = s.snapshot.find(pid);
      if (!rule.forbid || rule.role || (rule.exe && *rule.exe != "*")) continue;
      RC_ASSERT(rule.uid && process->uid.known() && *process->uid != *rule.uid);
    }
  }
}

void explanations_name_who_is_there() {
  const Stage s;
  for (const auto& account : s.attribution.accounts) {
    std::set<std::string> codes;
    for (const auto& explanation : account.explanations) {
      codes.insert(explanation.code);
      RC_ASSERT(!explanation.text.empty());
      RC_ASSERT(std::is_sorted(explanation.pids.begin(), explanation.pids.end()));
      for (const auto pid : explanation.pids) {
        const bool charged = std::any_of(s.snapshot.charges.begin(), s.snapshot.charges.end(),
                                         [who = pid](const DriverCharge& charge) { return charge.pid == who; });
        RC_ASSERT(s.snapshot.find(pid) != nullptr || charged);
      }
    }
    if (codes.empty() || codes == std::set<std::string>{"ghost-utilization"}) continue;
    RC_ASSERT(s.snapshot.gpus[account.index].memory.used.known());
    if (account.remainder.known()) RC_ASSERT(*account.remainder > s.policy.memory_tolerance);
  }
}

void same_snapshot_same_bytes() {
  const Stage s;
  auto shuffled = s.snapshot;
  std::reverse(shuffled.references.begin(), shuffled.references.end());
  std::reverse(shuffled.charges.begin(), shuffled.charges.end());
  std::reverse(shuffled.hidden_references.begin(), shuffled.hidden_references.end());
  std::reverse(shuffled.shared_clients.begin(), shuffled.shared_clients.end());
  std::reverse(shuffled.shells.begin(), shuffled.shells.end());
  const auto again = attribute_holders(shuffled, s.policy);
  RC_ASSERT(again == s.attribution);
  RC_ASSERT(plan_free(s.snapshot, again, s.request).value_or(Plan{}) == s.plan);
  for (std::size_t i = 0; i < s.plan.steps.size(); ++i) RC_ASSERT(s.plan.steps[i].n == i + 1);
}

void memory_is_neither_lost_nor_counted_twice() {
  const Stage s;
  for (const auto& account : s.attribution.accounts) {
    Bytes charged, untied, of_holders;
    bool unknown = false;
    for (const auto& charge : s.snapshot.charges) {
      if (charge.gpu != account.index) continue;
      unknown = unknown || !charge.memory.known();
      charged += charge.memory.value_or(Bytes{0});
    }
    for (const auto& row : s.attribution.charged_to_nobody) {
      if (row.gpu == account.index) untied += row.memory.value_or(Bytes{0});
    }
    for (const auto& holder : s.attribution.holders) {
      for (const auto& on_gpu : holder.gpus) {
        if (on_gpu.index == account.index) of_holders += on_gpu.memory.value_or(Bytes{0});
      }
    }
    RC_ASSERT(account.attributed + untied == charged);
    RC_ASSERT(unknown || account.attributed == of_holders);
    RC_ASSERT(std::is_sorted(account.holders.begin(), account.holders.end()));
  }
}

void unknown_never_becomes_zero() {
  const Stage s;
  for (const auto& gpu : s.snapshot.gpus) {
    const auto& account = s.attribution.accounts[gpu.index];
    const bool configured = account.baseline.known() && account.baseline->source == BaselineSource::configured;
    if (!gpu.memory.used.known()) RC_ASSERT(!account.remainder.known() && (configured || !account.baseline.known()));
    if (!s.snapshot.visibility.all_references) RC_ASSERT(configured || !account.baseline.known());
    if (account.remainder.known() && account.remainder->count > 0)
      RC_ASSERT(account.attributed + account.baseline->amount + *account.remainder == *gpu.memory.used);
  }
  for (const auto& charge : s.snapshot.charges) {
    if (charge.memory.known()) continue;
    const auto* holder = s.attribution.find(charge.pid);
    if (holder == nullptr) continue;
    for (const auto& on_gpu : holder->gpus) RC_ASSERT(on_gpu.index != charge.gpu || !on_gpu.memory.known());
    RC_ASSERT(!s.attribution.accounts[charge.gpu].remainder.known());
  }
}

void everybody_is_in_one_group() {
  const Stage s;
  std::set<pid_t> met;
  for (const auto& group : s.attribution.groups) {
    RC_ASSERT(!group.holders.empty());
    for (const auto pid : group.holders) {
      RC_ASSERT(met.insert(pid).second);
      RC_ASSERT(s.attribution.find(pid)->group == group.id);
    }
    for (const auto& relative : group.relatives) RC_ASSERT(met.insert(relative.key.pid).second);
  }
  for (const auto& holder : s.attribution.holders) RC_ASSERT(met.contains(holder.key.pid));
}

// Nobody is a leftover while his parent is a living process outside the group that he is in one process group with.
void no_leftover_beside_its_creator() {
  const Stage s;
  for (const auto& holder : s.attribution.holders) {
    if (holder.standing != Standing::leftover) continue;
    const auto* process = s.snapshot.find(holder.key.pid);
    const auto* parent = s.snapshot.find(process->ppid);
    const bool inside = parent != nullptr && (s.attribution.find(parent->key.pid) != nullptr ||
                                              relative_of(s.attribution, parent->key.pid) != nullptr);
    if (parent == nullptr || is_gone(*parent) || inside) continue;
    RC_ASSERT(parent->pgid != process->pgid);
  }
}

void seeing_less_never_makes_a_leftover() {
  const Stage s;
  auto dimmer = s.snapshot;
  dimmer.visibility.all_references = false;
  const auto attribution = attribute_holders(dimmer, Policy{});
  for (const auto& holder : attribution.holders) {
    if (holder.standing == Standing::leftover)
      RC_ASSERT(s.attribution.find(holder.key.pid)->standing == Standing::leftover);
  }
}

// What could not be asked is unknown, never gone.
void a_manager_that_is_silent_never_makes_a_leftover() {
  const Stage s;
  auto silent = s.snapshot;
  silent.services = {};
  silent.services.answered = Unknown::timed_out;
  for (auto* list : {&silent.containers, &silent.jobs}) {
    for (auto& entry : *list) entry.exists = Unknown::timed_out;
  }
  const auto attribution = attribute_holders(silent, s.policy);
  for (const auto& holder : attribution.holders) {
    if (holder.standing == Standing::leftover)
      RC_ASSERT(s.attribution.find(holder.key.pid)->standing == Standing::leftover);
  }
}

// A hint is no evidence: it makes nobody a holder, and it can only take proof away.
void hints_make_nobody_a_holder_nor_a_leftover() {
  const Stage s;
  auto without = s.snapshot;
  without.hidden_references.clear();
  const auto attribution = attribute_holders(without, s.policy);
  RC_ASSERT(attribution.holders.size() == s.attribution.holders.size());
  for (const auto& holder : s.attribution.holders) {
    const auto* plain = attribution.find(holder.key.pid);
    RC_ASSERT(plain != nullptr);
    RC_ASSERT(holder.standing != Standing::leftover || plain->standing == Standing::leftover);
  }
}

/// The machine without those that ended.
Snapshot without(Snapshot after, const std::set<pid_t>& ended) {
  std::erase_if(after.processes, [&](const Process& process) { return ended.contains(process.key.pid); });
  std::erase_if(after.references, [&](const Reference& reference) { return ended.contains(reference.pid); });
  std::erase_if(after.charges, [&](const DriverCharge& charge) { return ended.contains(charge.pid); });
  for (auto& process : after.processes) {
    if (ended.contains(process.ppid)) process.ppid = 1;
  }
  for (auto& client : after.shared_clients) std::erase_if(client, [&](pid_t pid) { return ended.contains(pid); });
  std::erase_if(after.shared_clients, [](const std::vector<pid_t>& client) { return client.size() < 2; });
  return after;
}

/// Whose standing may change with the end of those: kin in any way, or the other end of a pipe.
bool is_touched(const Snapshot& snapshot, const std::set<pid_t>& ended) {
  std::set<pid_t> groups, sessions;
  for (const auto pid : ended) {
    groups.insert(snapshot.find(pid)->pgid);
    sessions.insert(snapshot.find(pid)->sid);
  }
  const auto has_ended = [&](pid_t pid) { return ended.contains(pid); };
  const auto touches = [&](const Process& process) {
    if (ended.contains(process.key.pid)) return false;
    const bool piped = std::any_of(process.pipes.begin(), process.pipes.end(), [&](const PipeEnd& pipe) {
      return pipe.other_end.known() && std::any_of(pipe.other_end->begin(), pipe.other_end->end(), has_ended);
    });
    return piped || ended.contains(process.ppid) || groups.contains(process.pgid) || sessions.contains(process.sid) ||
           (process.named_parent && ended.contains(*process.named_parent));
  };
  return std::any_of(snapshot.processes.begin(), snapshot.processes.end(), touches) ||
         std::any_of(snapshot.shared_clients.begin(), snapshot.shared_clients.end(),
                     [&](const std::vector<pid_t>& client) {
                       return std::any_of(client.begin(), client.end(), has_ended) &&
                              !std::all_of(client.begin(), client.end(), has_ended);
                     });
}

void after_success_nothing_is_left_to_plan() {
  const Stage s;
  const auto ended = to_end(s.plan);
  if (ended.empty() || !s.request.selection.pids.empty() || is_touched(s.snapshot, ended)) return;
  auto request = s.request;
  std::erase_if(request.even, [&](const ProcessSelector& named) { return ended.contains(named.pid); });
  const auto after = without(s.snapshot, ended);
  const auto again = plan_free(after, attribute_holders(after, s.policy), request);
  RC_ASSERT(again.has_value());
  RC_ASSERT(to_end(*again).empty());
}

void a_later_round_asks_nobody_twice() {
  const Stage s;
  const auto ended = to_end(s.plan);
  const auto after = without(s.snapshot, ended);
  const auto round =
      plan_next_round(after, attribute_holders(after, s.policy), s.request, s.plan, s.snapshot, s.attribution);
  for (const auto pid : to_end(round)) {
    RC_ASSERT(s.snapshot.find(pid) != nullptr);
    RC_ASSERT(!ended.contains(pid));
  }
  for (const auto& step : round.steps)
    if (is_ending(step.action) && step.holder) RC_ASSERT(cites(step, after));
}

}  // namespace

int main() {
  return vacate::check_all({
      {"never vacate's own chain, pid 1, kernel threads", never_own_chain_nor_pid_one_nor_kernel_threads},
      {"protected ones only by name, absolute ones never", protected_ones_only_by_name},
      {"every signal is for a holder or its relative, and cites evidence",
       every_signal_is_for_a_holder_or_its_relative_and_cites_evidence},
      {"only leftovers unless more is asked for", only_leftovers_unless_more_is_asked_for},
      {"device files alone are never ended unasked", files_alone_are_never_ended_unasked},
      {"live work of others is never ended unnamed", live_work_of_others_is_never_ended_unnamed},
      {"a plan agrees with itself whole", a_plan_agrees_with_itself_whole},
      {"a reviewed plan only narrows", a_reviewed_plan_only_narrows},
      {"after success nothing is left to plan", after_success_nothing_is_left_to_plan},
      {"adding a protection never adds a step", adding_a_protection_never_adds_a_step},
      {"adding a policy rule never adds a signal", adding_a_policy_rule_never_adds_a_signal},
      {"what is forbidden is never asked", what_is_forbidden_is_never_asked},
      {"explanations name who is there, and only what is known", explanations_name_who_is_there},
      {"the same snapshot gives the same bytes", same_snapshot_same_bytes},
      {"memory is neither lost nor counted twice", memory_is_neither_lost_nor_counted_twice},
      {"unknown never becomes zero", unknown_never_becomes_zero},
      {"every holder is in exactly one group", everybody_is_in_one_group},
      {"no leftover beside its creator", no_leftover_beside_its_creator},
      {"seeing less never makes a leftover", seeing_less_never_makes_a_leftover},
      {"a silent manager never makes a leftover", a_manager_that_is_silent_never_makes_a_leftover},
      {"hints make nobody a holder nor a leftover", hints_make_nobody_a_holder_nor_a_leftover},
      {"a later round asks nobody twice", a_later_round_asks_nobody_twice},
  });
}
