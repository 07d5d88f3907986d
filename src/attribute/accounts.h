// SPDX-License-Identifier: Apache-2.0
// Where the memory of each GPU went: charged to holders, baseline, and what nobody owns up to (design.md, words).
// Unknown is never zero and never part of a sum.
#pragma once

#include <vector>

#include "attribute/attribute.h"
#include "attribute/charges.h"

namespace vacate {

/// One account a GPU of the snapshot, by index. `holders` must be what they are the accounts of.
[[nodiscard]] std::vector<GpuAccount> accounts_of(const Snapshot& snapshot, const Charges& charges,
                                                  const std::vector<Holder>& holders, const Policy& policy,
                                                  const Baselines& known);

/// Rows of the driver's lists that no holder answers for, by GPU and pid.
[[nodiscard]] std::vector<UntiedCharge> untied_charges(const Charges& charges);

}  // namespace vacate
