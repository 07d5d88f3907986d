// SPDX-License-Identifier: Apache-2.0
#include "plan/assemble.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "plan/digest.h"
#include "plan/mps.h"
#include "plan/wording.h"

namespace vacate {
namespace {

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

class Assembler {
 public:
  Assembler(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector, const Decisions& decisions)
      : snapshot_(snapshot), kinship_(kinship), selector_(selector), decisions_(decisions) {}

  Step signal_step(pid_t pid, const Rung& rung) const {
    const auto& member = *kinship_.member(pid);
    auto step = step_for(member);
    step.mps_server = selector_.mps_server_of(member);
    step.action = step.mps_server != 0 ? Action::terminate_client : Action::signal;
    step.ask = step.mps_server != 0 ? Ask::at_once : rung.ask;  // clients first (facts.md 1.8)
    step.rule = rung.rule;
    step.terms = member.terms();
    if (const auto unit = decisions_.units.find(pid); unit != decisions_.units.end()) {
      step.action = Action::stop_unit;
      step.unit = unit->second;
      step.because.push_back(unit_sentence(unit->second.name));
    }
    if (const auto thaw = decisions_.thaws.find(pid); thaw != decisions_.thaws.end()) {
      step.thaw = thaw->second;
      step.because.push_back(thaw_sentence(thaw->second));
    }
    if (member.holder != nullptr) append(step.because, evidence_sentences(*member.holder));
    if (step.mps_server != 0) step.because.push_back(mps_sentence(snapshot_, step.mps_server));
    if (rung.rule == "root-of-tree")
      step.because.push_back(root_sentence(rung.for_whom));
    else if (!rung.for_whom.empty())
      step.because.push_back(relative_sentence(member, rung.for_whom));
    if (member.holder != nullptr) {
      append(step.because, member.holder->because);
      if (const auto outside = selector_.pinned_outside(*member.holder); !outside.empty())
        step.because.push_back(other_gpus_remark(outside));
    }
    if (const auto remarks = decisions_.remarks.find(pid); remarks != decisions_.remarks.end())
      append(step.because, remarks->second);
    append(step.because, member.terms().because);
    if (const auto* process = snapshot_.find(pid)) append(step.because, condition_sentences(*process));
    return step;
  }

  Step refusal_step(pid_t pid, const Refusal& refusal) const {
    const auto& member = *kinship_.member(pid);
    auto step = step_for(member);
    step.action = Action::refuse;
    step.rule = refusal.rule;
    step.because.push_back(refusal.reason);
    append(step.because, evidence_sentences(*member.holder));
    append(step.because, member.holder->because);
    return step;
  }

 private:
  Step step_for(const Member& member) const {
    Step step;
    step.key = member.key();
    step.holder = member.holder != nullptr;
    if (member.holder != nullptr) step.gpus = pinned_gpus(snapshot_, *member.holder);
    if (const auto* process = snapshot_.find(step.key.pid)) step.title = title_of(*process);
    return step;
  }

  const Snapshot& snapshot_;
  const Kinship& kinship_;
  const Selector& selector_;
  const Decisions& decisions_;
};

}  // namespace

Plan assemble(const Snapshot& snapshot, const Kinship& kinship, const Selector& selector, const Decisions& decisions,
              const std::map<pid_t, Rung>& rungs) {
  const Assembler assembler(snapshot, kinship, selector, decisions);
  Plan plan;
  plan.boot_id = snapshot.host.boot_id;
  plan.pid_namespace = snapshot.host.pid_namespace;
  std::vector<std::tuple<std::size_t, bool, std::size_t, pid_t>> order;
  for (const auto& [pid, rung] : rungs)
    order.emplace_back(kinship.group_of(pid), rung.ask == Ask::after_others, kinship.depth_in_group(pid), pid);
  std::sort(order.begin(), order.end());
  for (const auto& entry : order)
    plan.steps.push_back(assembler.signal_step(std::get<pid_t>(entry), rungs.at(std::get<pid_t>(entry))));
  for (const auto& [pid, choice] : decisions.choices) {
    if (choice.refusal) plan.steps.push_back(assembler.refusal_step(pid, *choice.refusal));
  }
  plan = spare_mps_servers(std::move(plan), snapshot);
  std::stable_partition(plan.steps.begin(), plan.steps.end(),
                        [](const Step& step) { return step.action != Action::refuse; });
  for (std::size_t i = 0; i < plan.steps.size(); ++i) plan.steps[i].n = static_cast<unsigned>(i + 1);
  plan.id = plan_id(plan);
  return plan;
}

namespace {

void add(Fnv1a& hash, const UnitTarget& unit) {
  hash.add("unit");
  hash.add(unit.name);
  hash.add(unit.control_group);
  hash.add(to_string(unit.main));
}

void add(Fnv1a& hash, const ThawTarget& thaw) {
  hash.add("thaw");
  hash.add(thaw.path);
  hash.add(describe(thaw.freezer));
}

}  // namespace

std::string plan_id(const Plan& plan) {
  Fnv1a hash;
  hash.add(plan.boot_id);
  hash.add(plan.pid_namespace);
  for (const auto& step : plan.steps) {
    hash.add(step.n);
    hash.add(describe(step.action));
    hash.add(describe(step.ask));
    hash.add(static_cast<std::uint64_t>(step.key.pid));
    hash.add(step.key.start_ticks);
    hash.add(step.key.pidfd_inode);
    hash.add(step.key.pid_namespace);
    hash.add(step.title);
    hash.add(std::uint64_t{step.holder ? 1U : 0U});
    hash.add(step.gpus.size());
    for (const auto gpu : step.gpus) hash.add(gpu);
    hash.add(step.because.size());
    for (const auto& sentence : step.because) hash.add(sentence);
    hash.add(step.rule);
    hash.add(std::uint64_t{step.terms.term_only ? 1U : 0U});
    hash.add(static_cast<std::uint64_t>(step.terms.grace ? step.terms.grace->count() : -1));
    if (step.mps_server != 0) hash.add(static_cast<std::uint64_t>(step.mps_server));
    if (step.unit) add(hash, *step.unit);
    if (step.thaw) add(hash, *step.thaw);
  }
  return hash.id();
}

}  // namespace vacate
