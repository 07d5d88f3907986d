// SPDX-License-Identifier: Apache-2.0
// Where the memory of each GPU went: charged to holders, baseline, and what nobody owns up to (design.md, words).
// Unknown is never zero and never part of a sum.
#pragma once

#include <vector>

#include "attribute/attribute.h"
#include "attribute/charges.h"

namespace vacate {

/// One account a GPU of the snapshot, by index, without explanations. `holders` must be what they are the accounts of,
/// their protection decided. Baselines: configured by `policy`, else `known`, else assumed, which is only done where
/// nothing unseen could hold what is taken for it.
[[nodiscard]] std::vector<GpuAccount> accounts_of(const Snapshot& snapshot, const Charges& charges,
                                                  const std::vector<Holder>& holders, const Policy& policy,
                                                  const Baselines& known);

/// Is there more in use than holders are charged for and the GPU uses by itself, beyond the tolerance? No where that
/// cannot be told: an unknown figure is no memory.
[[nodiscard]] bool has_unowned_memory(const Gpu& gpu, const GpuAccount& account, const Policy& policy);

/// Has it only nodes of no single GPU open, one of which could be a client's last reference (facts.md 2.2.6)? Not where
/// a built-in rule says that it pins no memory.
[[nodiscard]] bool may_hold_unseen(const Holder& holder) noexcept;

/// Rows of the driver's lists that no holder answers for, by GPU and pid.
[[nodiscard]] std::vector<UntiedCharge> untied_charges(const Charges& charges);

}  // namespace vacate
