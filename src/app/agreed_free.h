// SPDX-License-Identifier: Apache-2.0
// `free` of what somebody has looked at: a plan in a file, or the one that was shown before a question. Between that
// and now the machine went on, so it is looked at again, and what both plans have in common is prepared.
#pragma once

#include <string>
#include <vector>

#include "app/free.h"
#include "plan/agreement.h"

namespace vacate {

/// The plan in a file that root or the caller alone could have written. refused: others could have. malformed: it
/// cannot be read, or is no such plan; the message says where.
[[nodiscard]] Result<Plan> load_plan(const std::string& path);

/// prepare_free(), cut down to what `reviewed` has too. Whoever `request` names by pid and is gone by now is no error
/// if `reviewed` has it. refused: see check_same_machine(); malformed: see prepare_free().
[[nodiscard]] Result<PreparedFree> prepare_agreed(Look look, const std::vector<std::string>& gpu_words,
                                                  FreeRequest request, Deadline::Clock::time_point started,
                                                  const Plan& reviewed, Newcomers newcomers);

}  // namespace vacate
