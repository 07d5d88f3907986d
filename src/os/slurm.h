// SPDX-License-Identifier: Apache-2.0
// Has a Slurm job ended? Only Slurm's own word counts, asked through scontrol. Its text is a stranger's: what is not
// exactly what is waited for leaves the job unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "model/snapshot.h"
#include "os/program.h"

namespace vacate {

/// What `scontrol --oneliner show job ID` says of `id`. false: the controller does not know it (it forgets a job some
/// minutes after its end, never before), or has it in a state in which it has no nodes any more. true: it has some.
/// Anything else, a job that waits for a second run among it, is unknown.
[[nodiscard]] Reading<bool> parse_job_answer(std::string_view id, const ProgramOutput& answer);

/// Asks about each of `ids` (numbers) in turn until `deadline`; in the order of `ids`.
[[nodiscard]] std::vector<Existence> ask_slurm(const std::vector<std::string>& ids, Deadline deadline);

}  // namespace vacate
