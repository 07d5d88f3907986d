// SPDX-License-Identifier: Apache-2.0
// What one look gave, as values: who is there and where the memory is. Without the pins of the scan, so that nothing
// here can lead to a signal.
#pragma once

#include "model/holder.h"
#include "model/snapshot.h"

namespace vacate {

struct Sighting {
  Snapshot snapshot;
  Attribution attribution;
};

/// The same process in two looks. The pidfd's inode is left out: a look has it only of the processes that it pinned.
[[nodiscard]] inline bool is_same_process(const ProcessKey& a, const ProcessKey& b) noexcept {
  return a.pid == b.pid && a.start_ticks == b.start_ticks;
}

}  // namespace vacate
