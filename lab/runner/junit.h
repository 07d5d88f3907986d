// SPDX-License-Identifier: Apache-2.0
// Results as JUnit XML, for CI systems that show them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "lab/runner/case_worker.h"

namespace lab {

/// The document; valid XML 1.0 whatever the results hold.
[[nodiscard]] std::string junit_text(const std::vector<CaseResult>& results);
[[nodiscard]] vacate::Result<void> write_junit(const std::string& path, const std::vector<CaseResult>& results);

}  // namespace lab
