// SPDX-License-Identifier: Apache-2.0
// The shared memory of a case: files of /dev/shm and System V segments that are there before the actors start, and who
// of the actors is to use them. Used only inside the machine.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/actor/plan.h"
#include "lab/case/case.h"

namespace lab {

/// Makes every [[shm]] entry. Files are sparse and last changed `age` ago; a System V segment is made by a process that
/// has ended since. Gives the System V id of each entry, -1 for a file.
[[nodiscard]] vacate::Result<std::vector<int>> make_shm(const Case& scenario);

/// What `actor` is to hold of them. `ids` is what make_shm() gave. Pure.
[[nodiscard]] std::vector<ShmPlan> shm_held_by(const Case& scenario, const std::vector<int>& ids,
                                               std::string_view actor);

}  // namespace lab
