// SPDX-License-Identifier: Apache-2.0
// Which control daemons of MPS there are, and what they say about their servers and clients (facts.md 1.8). Asked only
// where the driver lists a client; read-only. Whom to believe is for those who plan.
#pragma once

#include <vector>

#include "model/snapshot.h"
#include "os/procfs.h"
#include "probe/details.h"

namespace vacate {

/// Does the driver list any client of MPS?
[[nodiscard]] bool has_mps_clients(const std::vector<DriverCharge>& charges) noexcept;

/// Fills Snapshot::mps_daemons: by the program that they execute, in the scan's own pid namespace. A server that is no
/// such process among `processes`, and clients that are not there, are left out. About 1 s a daemon at most.
void ask_mps_daemons(const ProcDirectory& root, const std::vector<Process>& processes, Snapshot& snapshot);

}  // namespace vacate
