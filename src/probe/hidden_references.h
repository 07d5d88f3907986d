// SPDX-License-Identifier: Apache-2.0
// References that no table of descriptors shows, as far as their owner is known: hints for people and for explaining
// memory that nobody owns up to. Pure.
#pragma once

#include <vector>

#include "model/evidence.h"
#include "probe/sockets.h"
#include "probe/walk.h"

namespace vacate {

/// One entry a socket with descriptors queued, and one a file registered with a ring; by (pid, kind, fd, path). Owners
/// that are in no `processes` (sorted by pid) are left out: they are gone.
[[nodiscard]] std::vector<HiddenReference> hidden_references_from(const std::vector<InFlight>& queued,
                                                                  const std::vector<RingFile>& rings,
                                                                  const std::vector<Process>& processes);

}  // namespace vacate
