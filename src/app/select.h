// SPDX-License-Identifier: Apache-2.0
// Selectors as a person writes them, resolved against what the scan found, and an attribution narrowed to them. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/holder.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

/// Indices, sorted, of the GPUs that `words` name: an index as nvidia-smi shows it, a GPU- UUID or the unique beginning
/// of one, a PCI bus id in any usual spelling, "all". malformed: which word names none or several, and what there is.
[[nodiscard]] Result<std::vector<unsigned>> resolve_gpus(const std::vector<std::string>& words,
                                                         const std::vector<Gpu>& gpus);

/// What of `attribution` is selected: accounts of the selected GPUs with the selected holders on them.
[[nodiscard]] Attribution narrowed(const Attribution& attribution, const Snapshot& snapshot,
                                   const Selection& selection);

/// Is this holder one that `selection` means, whatever GPU it is on? GPUs are not looked at.
[[nodiscard]] bool is_selected(const Holder& holder, const Snapshot& snapshot, const Selection& selection);

}  // namespace vacate
