// SPDX-License-Identifier: Apache-2.0
// What the service, the container and the Slurm job of a process tell of its owner (design.md, Standing: the second
// half of test 3, the first of test 4). What could not be asked or seen is unknown: neither gone nor live. Scopes,
// units of users' managers and active units without a main process prove nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attribute/census.h"
#include "attribute/groups.h"
#include "attribute/origins.h"

namespace vacate {

struct Testimony {
  std::vector<std::string> gone;     ///< proofs that its owner is: sentences
  std::optional<std::string> lives;  ///< that somebody still owns it
  bool left_by_service = false;      ///< the first of `gone` is by its service
  /// It is the main process of a service that runs, or nobody said which process that is.
  bool may_be_main = false;
  std::optional<pid_t> keeper;    ///< the main process or first process that `lives` speaks of, if there is one
  std::vector<std::string> open;  ///< what could not be told and would decide it
};

/// Of a topmost member of a group. A unit whose main process is in the group is not one that left the group over.
[[nodiscard]] Testimony testimony_of(const Census& census, const Groups& groups, const Origins& origins,
                                     const Process& top);

}  // namespace vacate
