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

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;

constexpr auto kStartLimit = std::chrono::seconds(30);

std::string packed(const ActorPlan& plan) {
  Packer packer;
  packer(plan);
  return packer.bytes();
}

/// Where an `exe` leads when its links are followed; made if there is no such file, so that something can be bound
/// there.
Result<std::string> resolve_program(const std::string& exe) {
  if (access(exe.c_str(), F_OK) != 0) {
    if (auto made = write_file(exe, "", 0755); !made) return made.error();
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

bool has_failed(const Slot& slot) {
  return slot.phase.load() == Phase::failed || (slot.phase.load() < Phase::ready && slot.status.load() != kNoStatus);
}

}  // namespace

void Machine::Impl::request(std::uint32_t index) {
  Slot& slot = board.slot(index);
  slot.phase.store(Phase::requested);
  if (slot.parent.load() == kInitSlot) {
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

Result<std::vector<std::uint32_t>> Machine::Impl::plan_actors() {
  std::vector<std::uint32_t> slots;
  for (const ActorSpec& spec : scenario.actors) {
    if (spec.start != StartTime::begin) continue;
    auto slot = add_actor(spec.name, spec.parent, plan_actor(scenario, spec));
    if (!slot) return slot.error();
    slots.push_back(*slot);
  }
  return slots;
}

Result<void> Machine::Impl::bring_up(const std::vector<std::uint32_t>& slots, Deadline deadline) {
  const auto is_ready = [this](std::uint32_t index) {
    return index == kInitSlot || board.slot(index).phase.load() == Phase::ready;
  };
  for (;;) {
    const std::uint32_t seen = board.region().event.load();
    const Slot* waited_for = nullptr;
    for (const std::uint32_t index : slots) {
      const Slot& slot = board.slot(index);
      if (has_failed(slot)) return not_ready(slot);
      if (slot.phase.load() == Phase::planned && is_ready(slot.parent.load())) request(index);
      if (!is_ready(index)) waited_for = &slot;
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
    if (wanted(index) == FinalState::running) continue;
    (void)pidfd(index);  // had while it lives for certain
    board.slot(index).turn.store(1);
    board.nudge(index);
  }
  for (const std::uint32_t index : slots) {
    const FinalState state = wanted(index);
    if (state == FinalState::running || state == FinalState::spinning) continue;
    const char letter = state == FinalState::stopped ? 'T' : 'Z';
    while (read_stat(board.slot(index).pid.load()).state != letter) {
      if (deadline.passed()) return not_ready(board.slot(index));
      pollfd end{pidfd(index), POLLIN, 0};
      poll(&end, 1, 1);
    }
  }
  return {};
}

Result<void> Machine::start_actors() {
  const Deadline deadline = Deadline::after(kStartLimit);
  auto slots = impl_->plan_actors();
  if (!slots) return slots.error();
  if (auto up = impl_->bring_up(*slots, deadline); !up) return up;
  for (const std::uint32_t slot : *slots) (void)impl_->pidfd(slot);
  if (auto turned = impl_->take_final_states(*slots, deadline); !turned) return turned;
  for (const GpuSpec& gpu : impl_->scenario.machine.gpus) {
    if (gpu.state != GpuState::lost) continue;
    if (auto lost = set_gpu_state(kDriverDir, static_cast<std::uint32_t>(gpu.index), gpu.state); !lost) return lost;
  }
  return {};
}

}  // namespace lab
