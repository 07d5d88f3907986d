// SPDX-License-Identifier: Apache-2.0
// What the format has and the machine has not, refused by name before anything starts: a case must never pass because a
// part of it was silently left out. Whoever adds a part to the machine takes its line out here.
#include <fmt/format.h>

#include "lab/case/case.h"
#include "lab/machine/machine.h"

namespace lab {
namespace {

using Refusal = std::optional<std::string>;

/// What is started again is as it was at the first time, except for what is done to it from outside.
Refusal refuse_respawn(const Case& scenario, const ActorSpec& actor) {
  for (const std::string& name : actor.respawn) {
    const ActorSpec& child = *scenario.actor(name);
    if (child.state != ActorState::running && child.state != ActorState::spinning)
      return fmt::format("respawn of '{}', which has a state", name);
    if (child.pidns != actor.pidns) return fmt::format("respawn of '{}', which is in another pidns", name);
  }
  return std::nullopt;
}

bool is_ancestor(const Case& scenario, const std::string& name, const ActorSpec* of) {
  while (of != nullptr && of->parent != name) of = scenario.actor(of->parent);
  return of != nullptr;
}

Refusal refuse_hold(const Case& scenario, const ActorSpec& actor, const HoldSpec& hold) {
  if (hold.how == How::exported) {
    // It would have to be ready before its ancestor is, which has to be ready before it is forked.
    if (is_ancestor(scenario, actor.name, scenario.actor(hold.from))) return "how \"exported\" from a descendant";
    return std::nullopt;
  }
  if (hold.how == How::thread && actor.on_term == OnTerm::fork)
    return "how \"thread\" with on_term \"fork\": a fork takes no thread along";
  if (hold.how == How::thread && actor.on_term == OnTerm::let_go)
    return "how \"thread\" with on_term \"let-go\": it closes what its main thread has";
  // A fork's parent is the process that it is a copy of.
  if (!hold.from.empty() && hold.from != actor.parent)
    return fmt::format("from \"{}\", which is not its parent", hold.from);
  return std::nullopt;
}

/// What a parent without root's rights cannot give its child.
Refusal refuse_under(const ActorSpec& actor, const ActorSpec& parent) {
  if (parent.user == User::root) return std::nullopt;
  if (actor.state == ActorState::dumping) return "state \"dumping\" under a parent that is not root";
  if (actor.user != parent.user) return "a user other than that of its parent, which is not root";
  // Below /home nothing else lies that the program would have to be bound over.
  if (!actor.exe.empty() && !actor.exe.starts_with("/home/"))
    return "exe outside /home under a parent that is not root";
  if (!actor.cgroup.empty()) return "cgroup under a parent that is not root";
  if (actor.pidns != parent.pidns) return "pidns under a parent that is not root";
  return std::nullopt;
}

Refusal refuse_actor(const Case& scenario, const ActorSpec& actor) {
  if (auto refusal = refuse_respawn(scenario, actor)) return refusal;
  for (const HoldSpec& hold : actor.holds) {
    if (auto refusal = refuse_hold(scenario, actor, hold)) return refusal;
    if (!hold.from.empty() && hold.how != How::exported && !actor.exe.empty()) return "exe of a fork without exec";
  }
  const ActorSpec* parent = scenario.actor(actor.parent);
  if (parent == nullptr) return std::nullopt;
  if (!parent->pidns.empty() && actor.pidns != parent->pidns) return "a pidns below another";
  return refuse_under(actor, *parent);
}

/// A System V segment has no descriptors and no lock, and nobody can set its times.
Refusal refuse_shm(const ShmSpec& shm) {
  if (!shm.sysv) return std::nullopt;
  if (!shm.opened_by.empty()) return "opened_by of a System V segment";
  if (!shm.locked_by.empty()) return "locked_by of a System V segment";
  if (shm.age > 0) return "age of a System V segment";
  return std::nullopt;
}

Refusal refuse_step(const Case& scenario, const Step& step) {
  const auto* reuse = std::get_if<verb::PidReuse>(&step.verb);
  const ActorSpec* by = reuse == nullptr ? nullptr : scenario.actor(reuse->by);
  const ActorSpec* parent = by == nullptr ? nullptr : scenario.actor(by->parent);
  // Choosing a number is root's right.
  if (parent != nullptr && parent->user != User::root) return "step pid_reuse: a parent that is not root";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unsupported(const Case& scenario) {
  for (const ActorSpec& actor : scenario.actors) {
    if (auto refusal = refuse_actor(scenario, actor)) return fmt::format("actor '{}': {}", actor.name, *refusal);
  }
  for (const ShmSpec& shm : scenario.shms) {
    if (auto refusal = refuse_shm(shm)) return fmt::format("shm '{}': {}", shm.name, *refusal);
  }
  for (const Step& step : scenario.steps) {
    if (auto refusal = refuse_step(scenario, step)) return refusal;
  }
  return std::nullopt;
}

}  // namespace lab
