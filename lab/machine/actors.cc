// SPDX-License-Identifier: Apache-2.0
// Starting the actors of a case: orders on the board, parents first, independent ones at the same time, and the wait
// until each holds what it should.
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <fmt/format.h>

#include "lab/actor/spawn.h"
#include "lab/driver/driver.h"
#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"
#include "lab/machine/plan.h"
#include "lab/machine/root.h"
#include "lab/machine/shm.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;

constexpr auto kStartLimit = std::chrono::seconds(30);
constexpr auto kNumberLimit = std::chrono::seconds(5);

std::string packed(const ActorPlan& plan) {
  Packer packer;
  packer(plan);
  return packer.bytes();
}

/// Where an `exe` leads when its links are followed. If there is no such file it becomes a copy of the actor program:
/// root binds the program over it, whoever may not do that runs the copy.
Result<std::string> resolve_program(const std::string& exe) {
  if (access(exe.c_str(), F_OK) != 0) {
    if (auto made = write_file(exe, read_file(kActorPath), 0755); !made) return made.error();
  }
  char resolved[PATH_MAX];
  if (realpath(exe.c_str(), resolved) == nullptr) return vacate::system_error(exe);
  return std::string(resolved);
}

Error not_ready(const Slot& slot) {
  if (slot.error[0] != '\0') return {ErrorCode::io, fmt::format("actor '{}': {}", slot.name, slot.error)};
  if (slot.status.load() != kNoStatus) {
    return {ErrorCode::io,
            fmt::format("actor '{}' ended before it was ready, with status {}", slot.name, slot.status.load())};
  }
  return {ErrorCode::timed_out, fmt::format("actor '{}' did not get ready in time", slot.name)};
}

/// What /proc/PID/stat says of a process in that state; 0: nothing to wait for.
char letter_of(FinalState state) {
  switch (state) {
    case FinalState::stopped:
      return 'T';
    case FinalState::traced:
      return 't';
    case FinalState::zombie:
    case FinalState::zombie_leader:
      return 'Z';
    default:
      return '\0';
  }
}

bool is_frozen(FinalState state) { return state == FinalState::frozen || state == FinalState::frozen_v1; }

bool has_failed(const Slot& slot) {
  return slot.phase.load() == Phase::failed || (slot.phase.load() < Phase::ready && slot.status.load() != kNoStatus);
}

}  // namespace

void Machine::Impl::request(std::uint32_t index) {
  Slot& slot = board.slot(index);
  slot.phase.store(Phase::requested);
  if (slot.parent.load() == kInitSlot) {
    const std::lock_guard lock(orders);
    spawn_requested({board, false}, index, birth_ends, {});
  } else {
    board.nudge(slot.parent.load());
  }
}

Result<std::uint32_t> Machine::Impl::add_actor(const std::string& name, const std::string& parent, ActorPlan plan) {
  if (name.size() >= sizeof(Slot::name)) return Error{ErrorCode::malformed, "the name is too long: " + name};
  std::uint32_t parent_slot = kInitSlot;
  if (parent != kInit) {
    auto found = find(parent);
    if (!found) return found;
    parent_slot = *found;
  }
  if (!plan.exe.empty()) {
    auto program = resolve_program(plan.exe);
    if (!program) return program.error();
    plan.exe = *program;
  }
  if (!plan.cgroup.empty()) {
    if (!has_cgroups)
      return Error{ErrorCode::unsupported, fmt::format("actor '{}' needs a cgroup, and none can be made", name)};
    if (auto made = make_directories(plan.cgroup); !made) return made.error();
  }
  const std::lock_guard lock(orders);
  const std::uint32_t slot = board.add(name, SlotKind::actor, parent_slot);
  if (slot == kNoSlot) return Error{ErrorCode::refused, "too many processes for one machine"};
  board.slot(slot).never_reaped.store(plan.state == FinalState::zombie ? 1 : 0);
  board.slot(slot).turn.store(0);
  if (auto written = board.write_plan(slot, packed(plan)); !written) return written.error();
  return slot;
}

Result<void> Machine::Impl::await(std::uint32_t index, Phase phase, Deadline deadline) const {
  const Slot& slot = board.slot(index);
  for (;;) {
    const std::uint32_t seen = board.region().event.load();
    find_number(index);
    if (slot.phase.load() == Phase::failed) return not_ready(slot);
    if (slot.phase.load() >= phase) return {};
    if (slot.status.load() != kNoStatus || deadline.passed()) return not_ready(slot);
    futex_wait(board.region().event, seen, deadline);
  }
}

Result<void> Machine::Impl::start_shell() {
  auto slot = add_actor(std::string(kShell), std::string(kInit), plan_shell());
  if (!slot) return slot.error();
  request(*slot);
  return await(*slot, Phase::ready, Deadline::after(kStartLimit));
}

Result<std::uint32_t> Machine::Impl::add_actor_of_case(const ActorSpec& spec) {
  ActorPlan plan = plan_actor(scenario, spec);
  plan.shms = shm_held_by(scenario, shm_ids, spec.name);
  if (scenario.machine.hidepid) plan.proc_options = kHidePid;
  std::vector<std::uint32_t> owners;
  for (std::size_t i = 0; i < spec.holds.size(); ++i) {
    if (plan.holds[i].kind != HoldKind::exported) continue;
    auto owner = find(spec.holds[i].from);
    if (!owner) return owner.error().within(fmt::format("actor '{}'", spec.name));
    plan.holds[i].exporter = *owner;
    owners.push_back(*owner);
  }
  auto slot = add_actor(spec.name, spec.parent, std::move(plan));
  if (!slot) return slot;
  exporters[*slot] = std::move(owners);
  if (spec.pidns.empty()) return slot;
  const auto known = namespaces.find(spec.pidns);
  if (known == namespaces.end() || exited(known->second))
    namespaces[spec.pidns] = *slot;  // gone with its first process
  board.slot(*slot).ns.store(namespaces[spec.pidns]);
  return slot;
}

bool Machine::Impl::may_be_forked(std::uint32_t index) const {
  const auto is_ready = [this](std::uint32_t other) {
    return other == kInitSlot || other == kNoSlot || board.slot(other).phase.load() == Phase::ready;
  };
  const Slot& slot = board.slot(index);
  const std::uint32_t first = slot.ns.load();
  const auto owners = exporters.find(index);
  if (owners != exporters.end() && !std::all_of(owners->second.begin(), owners->second.end(), is_ready)) return false;
  return slot.phase.load() == Phase::planned && is_ready(slot.parent.load()) && (first == index || is_ready(first));
}

Result<void> Machine::Impl::start_units() {
  if (scenario.units.empty()) return {};
  units = std::make_unique<Units>(scenario.units, board, [this](std::uint32_t slot) { start_again(slot); });
  auto bus = UnitBus::start(*units);
  if (!bus) return bus.error();
  unit_bus = std::move(*bus);
  return {};
}

Result<void> Machine::Impl::start_helpers() {
  respawner = Respawner::start(scenario.actors, board, [this](std::uint32_t slot) { start_again(slot); });
  for (const MpsSpec& spec : scenario.mps) {
    auto daemon = MpsDaemon::start(spec, *scenario.actor(spec.control), board);
    if (!daemon) return daemon.error();
    mps_daemons.push_back(std::move(*daemon));
  }
  return {};
}

void Machine::Impl::start_again(std::uint32_t index) {
  std::uint32_t fresh = kNoSlot;
  {
    const std::lock_guard lock(orders);
    const Slot& ended = board.slot(index);
    const std::string plan(board.plan(index));
    fresh = board.add(ended.name, SlotKind::actor, ended.parent.load());
    if (fresh == kNoSlot || !board.write_plan(fresh, plan)) return;
    board.slot(fresh).ns.store(ended.ns.load());
  }
  request(fresh);
}

Result<void> Machine::Impl::bring_up(const std::vector<std::uint32_t>& slots, Deadline deadline) {
  for (;;) {
    const std::uint32_t seen = board.region().event.load();
    const Slot* waited_for = nullptr;
    for (const std::uint32_t index : slots) {
      const Slot& slot = board.slot(index);
      if (has_failed(slot)) return not_ready(slot);
      if (may_be_forked(index)) request(index);
      find_number(index);
      if (slot.phase.load() != Phase::ready) waited_for = &slot;
    }
    if (waited_for == nullptr) return {};
    if (deadline.passed()) return not_ready(*waited_for);
    futex_wait(board.region().event, seen, deadline);
  }
}

/// Everybody holds what it should: now zombies die, the stopped stop and so on. There is no event for a stop or for the
/// end of a first thread that anybody but the parent could wait for, hence the short looks.
Result<void> Machine::Impl::take_final_states(const std::vector<std::uint32_t>& slots, Deadline deadline) {
  const auto wanted = [this](std::uint32_t index) {
    ActorPlan plan;
    Unpacker(board.plan(index))(plan);
    return plan.state;
  };
  for (const std::uint32_t index : slots) {
    const FinalState state = wanted(index);
    if (state == FinalState::dumping && !can_dump()) {
      return Error{ErrorCode::unsupported,
                   "state \"dumping\": this kernel hands cores to somebody outside the machine"};
    }
    if (state == FinalState::running || is_frozen(state)) continue;
    (void)pidfd(index);  // had while it lives for certain
    if (state == FinalState::traced) {
      if (auto traced = trace(index); !traced) return traced;
      continue;
    }
    board.slot(index).turn.store(1);
    board.nudge(index);
  }
  for (const std::uint32_t index : slots) {
    const char letter = letter_of(wanted(index));
    while (letter != '\0' && read_stat(board.slot(index).pid.load()).state != letter) {
      if (deadline.passed()) return not_ready(board.slot(index));
      pollfd end{pidfd(index), POLLIN, 0};
      poll(&end, 1, 1);
    }
    if (wanted(index) != FinalState::dumping) continue;
    if (auto dumping = await_dump(index, deadline); !dumping) return dumping;
  }
  for (const std::uint32_t index : slots) {  // last: others may be in the same cgroup
    const FinalState state = wanted(index);
    if (!is_frozen(state)) continue;
    auto frozen = state == FinalState::frozen ? freeze(index, deadline) : freeze_by_v1(index, deadline);
    if (!frozen) return frozen;
  }
  return {};
}

Result<void> Machine::Impl::start(const std::vector<std::uint32_t>& slots, Deadline deadline) {
  if (auto up = bring_up(slots, deadline); !up) return up;
  for (const std::uint32_t index : slots) {
    (void)pidfd(index);
    Slot& slot = board.slot(index);
    if (slot.ns.load() != kNoSlot) slot.group.store(getpgid(slot.pid.load()));  // it knows only its own namespace's
  }
  return take_final_states(slots, deadline);
}

Result<void> Machine::start_actors() {
  auto ids = make_shm(impl_->scenario);
  if (!ids) return ids.error();
  impl_->shm_ids = std::move(*ids);
  std::vector<std::uint32_t> slots;
  for (const ActorSpec& spec : impl_->scenario.actors) {
    if (spec.start != StartTime::begin) continue;
    auto slot = impl_->add_actor_of_case(spec);
    if (!slot) return slot.error();
    slots.push_back(*slot);
  }
  if (auto started = impl_->start(slots, Deadline::after(kStartLimit)); !started) return started;
  for (const GpuSpec& gpu : impl_->scenario.machine.gpus) {
    if (gpu.state != GpuState::lost) continue;
    if (auto lost = set_gpu_state(kDriverDir, static_cast<std::uint32_t>(gpu.index), gpu.state); !lost) return lost;
  }
  return {};
}

Result<void> Machine::start_later(const std::vector<std::string>& names, std::string_view of) {
  const Deadline deadline = Deadline::after(kStartLimit);
  std::vector<std::uint32_t> slots;
  // In the order of the case, which has parents first, whatever that of the step is.
  for (const ActorSpec& spec : impl_->scenario.actors) {
    if (std::find(names.begin(), names.end(), spec.name) == names.end()) continue;
    auto slot = impl_->add_actor_of_case(spec);
    if (!slot) return slot.error();
    const std::uint32_t parent = impl_->board.slot(*slot).parent.load();
    if (parent != kInitSlot && impl_->exited(parent)) {
      return Error{ErrorCode::gone, fmt::format("the parent of '{}', '{}', has ended", spec.name, spec.parent)};
    }
    slots.push_back(*slot);
  }
  if (slots.size() != names.size()) return Error{ErrorCode::malformed, "the case has no such actor"};
  if (!of.empty()) {
    auto owner = impl_->find(of);
    if (!owner) return owner.error();
    const Deadline limit = Deadline::after(kNumberLimit);
    if (auto free = impl_->reserve_number(slots.front(), *owner, limit); !free) return free;
  }
  return impl_->start(slots, deadline);
}

}  // namespace lab
