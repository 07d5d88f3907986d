// SPDX-License-Identifier: Apache-2.0
// `status` as a composition: scan, attribute, narrow, advise. Read only.
#pragma once

#include "base/result.h"
#include "model/exit_code.h"
#include "model/policy.h"
#include "probe/probe.h"
#include "report/status.h"

namespace vacate {

/// One scan with what attribution concludes from it. Has the pins of the scan.
struct Look {
  Scan scan;
  Attribution attribution;
};

[[nodiscard]] Look look_at_machine(DriverSession& driver, const Policy& policy);

/// The report of one look. `gpu_words` are the words of --gpu, none: all. malformed: a word that names no GPU. A
/// pid of nobody is a line of StatusReport::unmatched: whoever is watched may end.
[[nodiscard]] Result<StatusReport> report_status(Look look, const std::vector<std::string>& gpu_words, Asked asked);

/// 0 where it could look, blind spots or not; 4 where device nodes are here and no driver answers.
[[nodiscard]] ExitCode exit_code_of(const Snapshot& snapshot) noexcept;
[[nodiscard]] ExitCode exit_code_of(const StatusReport& report) noexcept;

/// Device nodes but no driver that answers: what holds memory can be seen, figures cannot.
[[nodiscard]] bool is_driver_silent(const Snapshot& snapshot) noexcept;

/// Which processes are vacate's own ancestors is known: they are never ended, so without that nobody is.
[[nodiscard]] bool knows_own_chain(const Snapshot& snapshot) noexcept;

/// Something that the caller may read could not be read, descriptors, mappings or what tells an owner: who is left over
/// may not have been told from who is not.
[[nodiscard]] bool failed_to_read(const Snapshot& snapshot) noexcept;

/// Finding nothing proves nothing: the driver is silent, the scan ran out of descriptors, or what was asked for is of
/// users whose processes the caller cannot read.
[[nodiscard]] bool may_have_missed_all(const Snapshot& snapshot, const Selection& selection);

}  // namespace vacate
