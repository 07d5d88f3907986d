// SPDX-License-Identifier: Apache-2.0
// --stop-units: who is ended by the stop of a service instead of by signals. A stop ends everything in the service, so
// a service is stopped as a whole or not at all: nobody in it may be protected, meant to stay, or vacate's own. Pure.
#pragma once

#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/selection.h"

namespace vacate {

/// Gives each holder of `decisions` that a service would start again the service to stop, or refuses it with the
/// reason. Adds what has device files open only and is in such a service, for it ends too.
void choose_units(const Snapshot& snapshot, const Attribution& attribution, const Kinship& kinship,
                  const Selector& selector, Decisions& decisions);

}  // namespace vacate
