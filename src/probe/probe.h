// SPDX-License-Identifier: Apache-2.0
// One look at the machine: driver, device nodes, processes, references. Read only. Gives a plain Snapshot and the pins
// that make sure its candidates are the processes that were looked at.
#pragma once

#include "gpu/driver_session.h"
#include "model/policy.h"
#include "model/snapshot.h"
#include "os/process_ref.h"

namespace vacate {

struct Scan {
  Snapshot snapshot;
  PinSet pins;       ///< every holder and every member of a group with one
  ScanUse use = {};  ///< how processes were looked at
};

/// Scans once. Never fails: what could not be seen is a blind spot of the snapshot.
[[nodiscard]] Scan take_scan(DriverSession& driver, const Policy& policy);

}  // namespace vacate
