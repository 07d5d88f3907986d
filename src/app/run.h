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
};

struct RunTools {
  InheritedState inherited;          ///< what the command is given back
  std::function<void()> on_started;  ///< the command has its descriptors: vacate may let go of its own
};

/// Returns when the command and everybody below it have ended, or the time limit has passed.
/// malformed: a word of --gpu that names no GPU; nothing was started.
[[nodiscard]] Result<RunOutcome> run_to_the_end(const RunRequest& request, const RunTools& tools, const Policy& policy);

}  // namespace vacate
