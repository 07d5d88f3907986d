// SPDX-License-Identifier: Apache-2.0
// From evidence to holders: who pins what, whose it is, and where each GPU's memory went. Pure: the same snapshot gives
// the same bytes; no system call, no clock, no driver.
#pragma once

#include <map>

#include "model/holder.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

/// Baselines that are known, configured or measured while nobody held the GPU, by index.
using Baselines = std::map<unsigned, Baseline>;

[[nodiscard]] Attribution attribute_holders(const Snapshot& snapshot, const Policy& policy,
                                            const Baselines& known = {});

}  // namespace vacate
