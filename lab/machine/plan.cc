// SPDX-License-Identifier: Apache-2.0
// See plan.h. No system calls.
#include "lab/machine/plan.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace lab {
namespace {

std::int64_t milliseconds(Seconds seconds) { return static_cast<std::int64_t>(std::llround(seconds * 1000)); }

/// How a hold is made: by opening nodes of its own, or out of what a fork brings along.
HoldKind kind_of(const HoldSpec& hold) {
  switch (hold.how) {
    case How::inherited:
      return HoldKind::inherited;
    case How::mapped:
    case How::thread:
    case How::in_flight:
      return hold.from.empty() ? HoldKind::client : HoldKind::inherited;
    case How::exported:
      return HoldKind::exported;
    case How::files:
      return HoldKind::files;
    case How::ctl:
      return HoldKind::ctl;
    case How::uvm:
      return HoldKind::uvm;
    case How::path_only:
      return HoldKind::path_only;
    default:
      return HoldKind::client;
  }
}

ListKind list_of(How how) {
  if (how == How::managed || how == How::exported) return ListKind::none;
  if (how == How::mps) return ListKind::mps;
  return how == How::graphics ? ListKind::graphics : ListKind::compute;
}

Place place_of(How how) {
  switch (how) {
    case How::mapped:
      return Place::mapping;
    case How::thread:
      return Place::thread;
    case How::in_flight:
      return Place::queue;
    default:
      return Place::table;
  }
}

HoldPlan plan_hold(const Case& scenario, const HoldSpec& hold) {
  HoldPlan plan;
  plan.kind = kind_of(hold);
  plan.list = list_of(hold.how);
  plan.opens_uvm = hold.how != How::graphics;
  plan.place = place_of(hold.how);
  for (const int index : hold.gpus) {
    const GpuSpec& gpu = scenario.machine.gpus.at(static_cast<std::size_t>(index));
    plan.gpus.push_back({static_cast<std::uint32_t>(gpu.index), static_cast<std::uint32_t>(gpu.minor)});
  }
  plan.bytes = vacate::mebibytes(hold.memory).count;
  plan.nodes = hold.nodes;
  plan.count = static_cast<std::uint32_t>(hold.count);
  plan.release_after_ms = hold.release.never() ? -1 : milliseconds(hold.release.after);
  plan.release_steps = static_cast<std::uint32_t>(std::max(1, hold.release.steps));
  return plan;
}

TermHabit habit_of(OnTerm on_term) {
  switch (on_term) {
    case OnTerm::ignore:
      return TermHabit::ignore;
    case OnTerm::slow:
      return TermHabit::slow;
    case OnTerm::fork:
      return TermHabit::fork;
    case OnTerm::let_go:
      return TermHabit::let_go;
    case OnTerm::exit:
      return TermHabit::exit;
  }
  return TermHabit::exit;
}

KillHabit habit_of(OnKill on_kill) {
  switch (on_kill) {
    case OnKill::stuck:
      return KillHabit::stuck;
    case OnKill::exiting:
      return KillHabit::exiting;
    case OnKill::exit:
      return KillHabit::exit;
  }
  return KillHabit::exit;
}

FinalState state_of(const ActorSpec& spec) {
  switch (spec.state) {
    case ActorState::stopped:
      return FinalState::stopped;
    case ActorState::traced:
      return FinalState::traced;
    case ActorState::frozen:
      return spec.freezer == FreezerVersion::v1 ? FinalState::frozen_v1 : FinalState::frozen;
    case ActorState::dumping:
      return FinalState::dumping;
    case ActorState::zombie:
      return FinalState::zombie;
    case ActorState::zombie_leader:
      return FinalState::zombie_leader;
    case ActorState::spinning:
      return FinalState::spinning;
    default:
      return FinalState::running;
  }
}

}  // namespace

Account account_of(User user) {
  switch (user) {
    case User::alice:
      return {1001, 1001, "alice", "/home/alice"};
    case User::bob:
      return {1002, 1002, "bob", "/home/bob"};
    case User::root:
      break;
  }
  return {0, 0, "root", "/root"};
}

std::vector<std::string> base_environment(User user) {
  const Account account = account_of(user);
  return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + account.home,
          "USER=" + account.name, "LANG=C.UTF-8"};
}

ActorPlan plan_actor(const Case& scenario, const ActorSpec& spec) {
  const Account account = account_of(spec.user);
  ActorPlan plan;
  plan.argv = spec.argv;
  plan.title = spec.title;
  plan.exe = spec.exe;
  plan.env = base_environment(spec.user);
  for (const auto& [name, value] : spec.env) plan.env.push_back(name + "=" + value);
  plan.uid = account.uid;
  plan.gid = account.gid;
  if (!spec.cgroup.empty()) plan.cgroup = "/sys/fs/cgroup" + spec.cgroup;
  plan.new_session = spec.session || spec.parent == kInit;
  plan.new_group = spec.group || spec.parent == kShell;
  plan.detached = spec.detached;
  plan.subreaper = spec.subreaper;
  plan.pipe = spec.pipe;
  plan.exits_with_parent = spec.on_parent_exit == OnParentExit::exit;
  plan.listen = static_cast<std::uint32_t>(spec.listen);
  plan.on_term = habit_of(spec.on_term);
  plan.slow_ms = static_cast<std::uint64_t>(milliseconds(spec.slow));
  plan.on_kill = habit_of(spec.on_kill);
  plan.stuck_ms = spec.stuck > 0 ? milliseconds(spec.stuck) : -1;
  plan.state = state_of(spec);
  for (const HoldSpec& hold : spec.holds) {
    plan.holds.push_back(plan_hold(scenario, hold));
    plan.fork_only = plan.fork_only || plan.holds.back().kind == HoldKind::inherited;
  }
  return plan;
}

ActorPlan plan_shell() {
  ActorPlan plan;
  plan.argv = {"-bash"};
  plan.title = "-bash";
  plan.exe = "/bin/bash";
  plan.env = base_environment(User::root);
  plan.new_session = true;
  plan.on_term = TermHabit::ignore;  // as an interactive bash does
  return plan;
}

}  // namespace lab
