// SPDX-License-Identifier: Apache-2.0
// One actor's life: it takes what its orders say, reports that it is ready, forks the children it is told to, and ends
// as the case says. What it must never do is hold a descriptor, an environment entry or a thread that the case did not
// ask for.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"
#include "lab/actor/board.h"

namespace lab {

/// After exec, with signals still blocked and the birth pipe, if its orders have one, at kBirthFd. Never returns.
[[noreturn]] void run_actor(const Board& board, std::uint32_t slot);

}  // namespace lab
