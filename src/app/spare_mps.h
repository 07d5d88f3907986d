// SPDX-License-Identifier: Apache-2.0
// Clients of MPS below the calling process, when everybody below it is to be ended: as by `free` their control daemon
// ends their contexts, or they are left alone (facts.md 1.8). A server goes with its clients or not at all.
#pragma once

#include <vector>

#include "execute/action_log.h"
#include "model/policy.h"
#include "model/run.h"

namespace vacate {

/// Whom no signal may reach, with the reason. Asks the driver, but only where a program of MPS runs on this machine.
[[nodiscard]] std::vector<EndedProcess> spare_mps(const Policy& policy, ActionLog& log);

}  // namespace vacate
