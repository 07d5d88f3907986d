// SPDX-License-Identifier: Apache-2.0
// Ends everybody who descends from the calling process, a child subreaper: TERM, and after the grace KILL, until nobody
// is left, whatever is forked meanwhile. Every signal goes through the pidfd of a process whose descent is proven
// (os/descendants.h); a control group is ended as a whole only when nobody else is in it.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "execute/action_log.h"
#include "model/run.h"
#include "os/control_group.h"
#include "os/descendants.h"

namespace vacate {

/// Finds out whom no signal may reach, each with the reason in `detail`, and does what can be done for them without
/// one. Asked before the first signal and before the first KILL; nobody is signalled meanwhile.
using FindSpared = std::function<std::vector<EndedProcess>(ActionLog&)>;

struct EndRequest {
  std::chrono::milliseconds patience{0};     ///< before the first TERM, for what ends by itself
  std::chrono::milliseconds grace{10000};    ///< from the first TERM to KILL
  std::chrono::milliseconds timeout{60000};  ///< for all of it, at least 5 s beyond the grace
  pid_t first = 0;                           ///< is asked alone, the others at half the grace; 0: everybody at once
  const ControlGroup* group = nullptr;       ///< where they were started
  int children = -1;                         ///< readable: a child has ended (a signalfd that takes CHLD)
  int hurry = -1;                            ///< readable: the grace is over
  FindSpared find_spared = {};
};

/// Reaps what ends; the status of a child that somebody waits for has to be taken before. Every signal is announced to
/// `log` before it is sent.
[[nodiscard]] EndOfFamily end_descendants(const EndRequest& request, ActionLog& log);

}  // namespace vacate
