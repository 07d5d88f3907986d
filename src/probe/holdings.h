// SPDX-License-Identifier: Apache-2.0
// What single processes hold, read anew: between the walk over all of them and a pin, or a signal, each may have let go
// of its GPUs. Facts only; nobody is added whom the walk did not find.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/snapshot.h"
#include "probe/mappings.h"
#include "probe/walk.h"

namespace vacate {

struct Holdings {
  Walk walk;
  Mappings mappings;
  /// Something of it could not be read: that nothing was found says nothing.
  [[nodiscard]] bool is_unread(pid_t pid) const;
};

/// Of `pids`; mappings of those in `with_maps` only, for one that blocks costs its whole patience again.
[[nodiscard]] Holdings read_holdings(const ProcDirectory& root, const DeviceNodes& nodes, std::uint64_t pid_namespace,
                                     const std::vector<pid_t>& pids, std::vector<pid_t> with_maps);

/// Does the process of `key` refer to anything that pins a GPU? True for one on its way out: what it holds goes with
/// it. gone: it has ended; any other error: it cannot be told. About the bearer of the number: prove afterwards that it
/// is the one that is meant. `seen` says which buffers are those of the driver.
[[nodiscard]] Result<bool> still_holds(const ProcessKey& key, const Snapshot& seen);

}  // namespace vacate
