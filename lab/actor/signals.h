// SPDX-License-Identifier: Apache-2.0
// How an actor takes signals: every one that a process sent is recorded on the board, then it does what the case says.
// Handlers only record, end the process or set flags for the actor's loop.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include "lab/actor/board.h"
#include "lab/actor/plan.h"

namespace lab {

/// Whose signals the handlers record and what they do; replaced as a whole in a forked child.
struct SignalPolicy {
  Board board;
  std::uint32_t slot = kNoSlot;
  TermHabit on_term = TermHabit::exit;
  pid_t parent = 0;    ///< whose end kParentEnded tells of
  int driver_fd = -1;  ///< where a call waits, or a slow end was ordered, that only KILL is to find; -1: none
};

/// Sent by the kernel when the parent ends (PR_SET_PDEATHSIG) to those that end with it.
[[nodiscard]] int parent_ended_signal() noexcept;

/// From now on handlers act by `policy`. To be called with signals blocked.
void set_signal_policy(const SignalPolicy& policy) noexcept;
/// Installs the handlers for every signal that can be caught.
void install_handlers() noexcept;
/// Takes every handler away, as exec does.
void remove_handlers() noexcept;

/// The signal that a slow actor is to end by, 0 if none came yet.
[[nodiscard]] int dying_by() noexcept;
/// One copy that on_term = "fork" owes, taken.
[[nodiscard]] bool take_copy_wanted() noexcept;
/// Is it to let go of everything that it holds? Asked once.
[[nodiscard]] bool take_let_go_wanted() noexcept;
/// Ends the process by the default action of `sig`, so that its status tells what ended it.
[[noreturn]] void die_by(int sig) noexcept;

/// Blocks every signal while it lives: no handler runs between a fork and the child's own policy.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked();

 private:
  sigset_t before_{};
};
/// Unblocks every signal: what a process born under SignalsBlocked does when it is set up.
void unblock_signals() noexcept;

}  // namespace lab
