// SPDX-License-Identifier: Apache-2.0
// What the format has and the machine has not, refused by name before anything starts: a case must never pass because a
// part of it was silently left out. Whoever adds a part to the machine takes its line out here.
#include <fmt/format.h>

#include "lab/case/case.h"
#include "lab/machine/machine.h"

namespace lab {
namespace {

using Refusal = std::optional<std::string>;

Refusal refuse_state(const ActorSpec& actor) {
  switch (actor.state) {
    case ActorState::traced:
      return "state \"traced\"";
    case ActorState::frozen:
      return "state \"frozen\"";
    case ActorState::dumping:
      return "state \"dumping\"";
    default:
      break;
  }
  if (actor.on_kill == OnKill::stuck) return "on_kill \"stuck\"";
  if (actor.on_kill == OnKill::exiting) return "on_kill \"exiting\"";
  if (actor.start == StartTime::later) return "start \"later\"";
  if (!actor.pidns.empty()) return "pidns";
  if (!actor.respawn.empty()) return "respawn";
  return std::nullopt;
}

Refusal refuse_hold(const ActorSpec& actor, const HoldSpec& hold) {
  switch (hold.how) {
    case How::mps:
      return "how \"mps\"";
    case How::thread:
      return "how \"thread\"";
    case How::in_flight:
      return "how \"in-flight\"";
    case How::exported:
      return "how \"exported\"";
    default:
      break;
  }
  // A fork's parent is the process that it is a copy of.
  if (!hold.from.empty() && hold.from != actor.parent)
    return fmt::format("from \"{}\", which is not its parent", hold.from);
  return std::nullopt;
}

/// What a parent without root's rights cannot give its child.
Refusal refuse_under(const ActorSpec& actor, const ActorSpec& parent) {
  if (parent.user == User::root) return std::nullopt;
  if (actor.user != parent.user) return "a user other than that of its parent, which is not root";
  if (!actor.exe.empty()) return "exe under a parent that is not root";
  if (!actor.cgroup.empty()) return "cgroup under a parent that is not root";
  return std::nullopt;
}

Refusal refuse_actor(const Case& scenario, const ActorSpec& actor) {
  if (auto refusal = refuse_state(actor)) return refusal;
  for (const HoldSpec& hold : actor.holds) {
    if (auto refusal = refuse_hold(actor, hold)) return refusal;
    if (!hold.from.empty() && !actor.exe.empty()) return "exe of a fork without exec";
  }
  const ActorSpec* parent = scenario.actor(actor.parent);
  if (parent == nullptr) return std::nullopt;
  if (parent->start == StartTime::begin && actor.start == StartTime::begin) return refuse_under(actor, *parent);
  return std::nullopt;
}

Refusal refuse_step(const Step& step) {
  if (std::holds_alternative<verb::PidReuse>(step.verb)) return "step pid_reuse";
  if (std::holds_alternative<verb::Start>(step.verb)) return "step start";
  if (const auto* run = std::get_if<verb::Run>(&step.verb); run != nullptr && !run->in_pidns.empty()) return "in_pidns";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unsupported(const Case& scenario) {
  for (const ActorSpec& actor : scenario.actors) {
    if (auto refusal = refuse_actor(scenario, actor)) return fmt::format("actor '{}': {}", actor.name, *refusal);
  }
  if (!scenario.units.empty()) return fmt::format("unit '{}': a service manager", scenario.units.front().name);
  if (!scenario.shms.empty()) return fmt::format("shm '{}'", scenario.shms.front().name);
  for (const Step& step : scenario.steps) {
    if (auto refusal = refuse_step(step)) return refusal;
  }
  return std::nullopt;
}

}  // namespace lab
