// SPDX-License-Identifier: Apache-2.0
// `shm list` and `shm clean` as compositions: look, judge, plan, (the caller asks), remove.
#pragma once

#include "base/result.h"
#include "execute/action_log.h"
#include "report/shm.h"

namespace vacate {

/// Looks and judges. malformed: a path that is no tmpfs.
[[nodiscard]] Result<ShmReport> look_at_shm(const ShmRequest& request);

/// Adds the plan of `clean` and the verdict of one that goes no further.
void plan_clean(ShmReport& report, const ShmRequest& request);

/// Removes what the plan says.
void carry_out_clean(ShmReport& report, ActionLog& log, int wake);
/// Nobody agreed.
void decline_clean(ShmReport& report);

}  // namespace vacate
