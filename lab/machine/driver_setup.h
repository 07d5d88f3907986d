// SPDX-License-Identifier: Apache-2.0
// The driver's configuration of a case. Pure.
#pragma once

#include "base/result.h"
#include "lab/case/case.h"
#include "lab/driver/driver.h"

namespace lab {

/// Complete (minors, PCI ids and UUIDs filled in). A GPU that gets lost is still well here: actors take their memory
/// before. malformed: what the driver cannot honour.
[[nodiscard]] vacate::Result<DriverConfig> driver_config(const Case& scenario);

}  // namespace lab
