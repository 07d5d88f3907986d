// SPDX-License-Identifier: Apache-2.0
// `run` as a composition: start the command below a keeper, pass signals on, end what it leaves behind, verify the GPUs
// that it used.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "app/used_gpus.h"
#include "model/policy.h"
#include "model/run.h"
#include "os/inherited_state.h"

namespace vacate {

struct RunRequest {
  std::vector<std::string> argv;
  std::chrono::milliseconds grace{10000};  ///< from TERM to KILL, for what is left
  GpuCheck check;                          ///< its time limit: for ending what is left, and again for its memory
  bool lock = false;                       ///< take turns with others on the GPUs of `check`, none named: on all
};

struct RunTools {
  InheritedState inherited;                     ///< what the command is given back
  std::function<void()> on_started;             ///< the command has its descriptors: vacate may let go of its own
  std::function<void(const std::string&)> say;  ///< told whom it waits for, before the command is started
};

/// Returns when the command and everybody below it have ended, or the time limit has passed.
/// Errors, and then nothing was started: malformed, a word of --gpu that names no GPU; others, a lock that cannot be
/// had, or a look that failed. For a lock that somebody has it waits as long as it takes.
[[nodiscard]] Result<RunOutcome> run_to_the_end(const RunRequest& request, const RunTools& tools, const Policy& policy);

}  // namespace vacate
