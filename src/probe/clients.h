// SPDX-License-Identifier: Apache-2.0
// Which processes share one open file of a GPU node: one client, or part of one (facts.md 2.2.1). Asks kcmp, which
// looks and changes nothing.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "probe/walk.h"

namespace vacate {

/// Order of two descriptors by their open file: less than, equal to or greater than zero; nothing where one of them is
/// gone.
using CompareHits = std::function<std::optional<int>(const NodeHit& a, const NodeHit& b)>;

/// The order kcmp gives. kcmp tells less from greater exactly so that sorting is possible (kcmp(2)).
[[nodiscard]] std::optional<int> compare_descriptions(const NodeHit& a, const NodeHit& b);

/// Processes with one open file in common: sets of two or more, each sorted, sets sorted, equal sets once. About n log
/// n comparisons.
[[nodiscard]] std::vector<std::vector<pid_t>> group_by_description(const std::vector<NodeHit>& hits,
                                                                   const CompareHits& compare);

}  // namespace vacate
