// SPDX-License-Identifier: Apache-2.0
// Forking an actor or a command from its parent, which is the machine's pid 1 or another actor: process group, session,
// user, cgroup, birth pipe and program as its orders say. Shared by both kinds of parent; waits for nothing but its own
// child.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "lab/actor/board.h"
#include "lab/actor/holdings.h"
#include "lab/actor/plan.h"

namespace lab {

/// The parent's side of a fork.
struct Parent {
  Board board;
  bool private_mounts = false;  ///< the program was bound over another in a mount namespace of this process's own
};

/// What goes on in a child that does not exec: the slot, its orders, the read end of its birth pipe. Never returns.
using GoOn = std::function<void(std::uint32_t, ActorPlan, vacate::UniqueFd)>;

/// Forks the actor of `slot`. Returns in the parent, with the write end of the birth pipe (owning nothing if it has
/// none); the child's own failures are told on the board.
[[nodiscard]] vacate::Result<vacate::UniqueFd> spawn_actor(const Parent& parent, std::uint32_t slot, const GoOn& go_on);

/// Forks the command of `slot`; it executes its program when the slot's `go` is set.
[[nodiscard]] vacate::Result<void> spawn_command(const Parent& parent, std::uint32_t slot);

/// Forks whatever `slot` is, if it is still `requested`; keeps birth pipes in `ends`.
void spawn_requested(const Parent& parent, std::uint32_t slot, std::vector<vacate::UniqueFd>& ends, const GoOn& go_on);

}  // namespace lab
