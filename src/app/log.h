// SPDX-License-Identifier: Apache-2.0
// `log`: the record of what was done, read back from wherever it is kept.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "report/log.h"

namespace vacate {

struct LogRequest {
  std::optional<std::chrono::milliseconds> since;  ///< only what was announced in the last so long
  std::vector<ProcessSelector> pids;
  std::string plan;  ///< the beginning of its id
};

/// Reads the journal and the file, each if it is there; neither has to be.
[[nodiscard]] LogReport read_log(const LogRequest& request);

}  // namespace vacate
