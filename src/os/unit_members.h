// SPDX-License-Identifier: Apache-2.0
// Who is in the control group of a service right before it is stopped, beside those who were in it when the stop was
// planned. Reads only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/process.h"
#include "os/procfs.h"

namespace vacate {

/// Why a stop would end somebody whom nobody was shown: a process in `control_group` that is none of `known` and was
/// not started by one of them as one of their users or root, or one that cannot be read. Nothing: there is nobody.
[[nodiscard]] std::optional<std::string> find_newcomer(const ProcDirectory& root, const std::string& control_group,
                                                       const std::vector<ProcessKey>& known);

}  // namespace vacate
