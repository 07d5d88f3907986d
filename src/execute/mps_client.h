// SPDX-License-Identifier: Apache-2.0
// Has the control daemon of MPS end the contexts of one client (facts.md 1.8). The client is not signalled: once the
// daemon does not list it any more it is a process like others.
#pragma once

#include "base/deadline.h"
#include "base/result.h"
#include "model/snapshot.h"
#include "os/process_ref.h"

namespace vacate {

/// `server` as the plan has it, `seen` the scan that the plan is from. Right before the daemon is told a number, that
/// number is the living `client`'s and in the daemon's own list. Returns when the list has it no more, or it has ended.
/// refused: the daemon does not list it, or keeps it; gone: the daemon or its server is; timed_out: no answer in time.
[[nodiscard]] Result<void> end_mps_contexts(const ProcessRef& client, pid_t server, const Snapshot& seen,
                                            Deadline deadline);

}  // namespace vacate
