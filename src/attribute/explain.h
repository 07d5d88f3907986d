// SPDX-License-Identifier: Apache-2.0
// Why memory that nobody owns up to may be in use (facts.md 2.2 to 2.4), and who would stand in the way of a reset. An
// explanation is a possibility unless the text says otherwise: nobody is ended because of one. Pure.
#pragma once

#include <vector>

#include "attribute/census.h"
#include "attribute/charges.h"
#include "model/holder.h"
#include "model/policy.h"

namespace vacate {

/// What explanations are drawn from. All outlive the call.
struct ExplainedBy {
  const Census& census;
  const Charges& charges;
  const std::vector<Holder>& holders;
  const Policy& policy;
};

/// Of one account, likeliest first; empty while there is nothing to explain: no more than the tolerance remains, or
/// what remains is not known. Codes: lag, dead-opener, managed-memory, exported-memory, hidden-reference,
/// unified-memory, unseen, driver-residue, and for a counter instead of memory ghost-utilization. Sentences have no
/// figures but pids.
[[nodiscard]] std::vector<Explanation> explanations_of(const Gpu& gpu, const GpuAccount& account,
                                                       const ExplainedBy& by);

}  // namespace vacate
