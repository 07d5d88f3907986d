// SPDX-License-Identifier: Apache-2.0
// Which processes share one open file of a GPU node: one client, or part of one (facts.md 2.2.1). Asks kcmp, which
// looks and changes nothing, in an expendable child: it waits for a lock that a process stuck in exec never gives back.
#pragma once

#include <functional>
#include <vector>

#include "probe/walk.h"

namespace vacate {

/// Order of two descriptors by their open file: less than, equal to or greater than zero. gone: one of them is closed
/// by now; any other error: it cannot be found out.
using CompareHits = std::function<Result<int>(const NodeHit& a, const NodeHit& b)>;

/// The order kcmp gives. kcmp tells less from greater exactly so that sorting is possible (kcmp(2)).
[[nodiscard]] Result<int> compare_descriptions(const NodeHit& a, const NodeHit& b);

struct SharedClients {
  /// Processes with one open file in common: two or more each, sorted, sets sorted, equal sets once.
  std::vector<std::vector<pid_t>> sets;
  bool complete = true;  ///< false: some sets may be missing or in parts
};
/// About n log n comparisons.
[[nodiscard]] SharedClients group_by_description(const std::vector<NodeHit>& hits, const CompareHits& compare);

/// The same with compare_descriptions in an expendable child. Nothing complete comes of one that blocks.
[[nodiscard]] SharedClients find_shared_clients(const std::vector<NodeHit>& hits);

}  // namespace vacate
