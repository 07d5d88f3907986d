// SPDX-License-Identifier: Apache-2.0
// Descriptors and mappings of all listed processes, by one of two ways (model/scan_use.h). Chooses the way; what is
// seen does not depend on it.
#pragma once

#include <vector>

#include "model/scan_use.h"
#include "probe/mappings.h"
#include "probe/walk.h"

namespace vacate {

struct ProcessLook {
  Mappings mappings;
  ScanUse use;
};

/// `walker` has its processes listed and is given all else. Where BPF does not work or breaks off, /proc is read.
[[nodiscard]] ProcessLook look_at_processes(Walker& walker, const DeviceNodes& nodes,
                                            const std::vector<std::uint64_t>& watched, ScanMethod method);

/// Is a look by /proc dearer than the start of the programs? By the numbers of processes and of their descriptors,
/// counted no further than the answer needs.
[[nodiscard]] bool is_worth_bpf(const ProcDirectory& root, const std::vector<Process>& processes);

}  // namespace vacate
