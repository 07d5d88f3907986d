// SPDX-License-Identifier: Apache-2.0
// Descriptors and mappings of all processes as two programs in the kernel report them (bpf/holders.bpf.c), in the terms
// of Walk and Mappings. Sees what a walk over /proc sees, neither more nor less: whom to look for, who is there at all
// and what a process is stay matters of /proc. Addresses of the kernel end here.
#pragma once

#include <memory>
#include <optional>

#include "os/expendable.h"
#include "probe/mappings.h"
#include "probe/walk.h"

struct vacate_report;

namespace vacate {

class BpfFindings;

/// What the program that looks at descriptors shares with its reader.
struct UnmapReport {
  void operator()(vacate_report* report) const noexcept;
};
using SharedReport = std::unique_ptr<vacate_report, UnmapReport>;

/// Can the programs be loaded here? denied: not by this process; unsupported: not on this machine, or not in this
/// build.
[[nodiscard]] Result<void> check_bpf_scan();

class BpfScan {
 public:
  /// Loads, and starts on the mappings. `walker` has its processes listed; `watched` as Walker has it. Both and `nodes`
  /// are referred to until the end. An error: why it cannot be done.
  [[nodiscard]] static Result<BpfScan> start(Walker& walker, const DeviceNodes& nodes,
                                             const std::vector<std::uint64_t>& watched);

  /// Puts every descriptor into the walk. After an error the walk is as it was.
  [[nodiscard]] Result<void> walk_descriptors();
  /// An error: the kernel did not answer in time, or broke off.
  [[nodiscard]] Result<Mappings> finish_mappings();

 private:
  BpfScan(Walker& walker, const DeviceNodes& nodes, const std::vector<std::uint64_t>& watched, UniqueFd files,
          SharedReport report, Expendable mappings)
      : walker_(walker),
        nodes_(nodes),
        watched_(watched),
        files_(std::move(files)),
        report_(std::move(report)),
        mappings_(std::move(mappings)) {}

  void look_after_sharers(const BpfFindings& found);

  Walker& walker_;
  const DeviceNodes& nodes_;
  const std::vector<std::uint64_t>& watched_;
  UniqueFd files_;
  SharedReport report_;
  Expendable mappings_;
};

}  // namespace vacate
