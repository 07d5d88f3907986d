// SPDX-License-Identifier: Apache-2.0
// Probes of what this kernel and these rights allow. All of them are about vacate's own process or about files that the
// kernel itself provides: nothing is changed, nobody is signalled, nothing can block.
#pragma once

#include <string_view>

#include "model/doctor.h"

namespace vacate {

[[nodiscard]] MachineFacts read_machine_facts();

/// From /proc/self/mountinfo.
[[nodiscard]] CgroupLayout parse_cgroup_layout(std::string_view mountinfo);
/// The word in brackets of /sys/kernel/security/lockdown; empty: none is.
[[nodiscard]] std::string parse_lockdown(std::string_view text);

}  // namespace vacate
