// SPDX-License-Identifier: Apache-2.0
// Sums what the walks found up to the references of a snapshot. Pure but for numbering nodes.
#pragma once

#include <vector>

#include "gpu/device_nodes.h"
#include "model/evidence.h"
#include "probe/mappings.h"
#include "probe/walk.h"

namespace vacate {

/// One reference a (process, node, kind), counted. A device that only a container has a node for is added to `nodes`.
[[nodiscard]] std::vector<Reference> references_from(const std::vector<NodeHit>& hits,
                                                     const std::vector<MappingHit>& mappings, DeviceNodes& nodes);

}  // namespace vacate
