// SPDX-License-Identifier: Apache-2.0
// A machine as a file: what `record` writes of a look, and the look that `--replay` has instead of a scan. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/look.h"
#include "report/snapshot_json.h"

namespace vacate {

enum class Redaction { none, for_the_public };

[[nodiscard]] Recording record_of(const Snapshot& snapshot, Redaction redaction);

/// What attribution makes of a recording today. Nothing is pinned, so nothing in it could be signalled.
[[nodiscard]] Look look_at_recording(Recording recording, const Policy& policy);

/// Users as the recorded machine calls them, or numbers. malformed: nobody in the recording is called that.
[[nodiscard]] Result<std::vector<uid_t>> resolve_recorded_users(const std::vector<std::string>& words,
                                                                const Snapshot& snapshot);

}  // namespace vacate
