// SPDX-License-Identifier: Apache-2.0
// Compares what a command did with what its step expects. Pure: the caller has observed everything, and nothing here
// touches the machine. Every difference is one line "KEY: expected .., found ..".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/case/case.h"
#include "lab/machine/machine.h"

namespace lab {

/// Everything seen around one command.
struct Observation {
  CommandResult result;
  std::vector<std::uint64_t> used;             ///< MiB by GPU index, right after
  std::vector<ActorStatus> before;             ///< every process of the case when the command began
  std::vector<ActorStatus> after;              ///< and when it had returned
  std::vector<std::string> shm;                ///< names in /dev/shm afterwards
  std::map<std::string, std::string> earlier;  ///< standard output of earlier steps by their names
};

/// The pid of an actor by exact name, or why there is none.
using PidOf = std::function<vacate::Result<long>(std::string_view)>;

/// `text` with every {pid:NAME} replaced.
[[nodiscard]] vacate::Result<std::string> with_pids(std::string_view text, const PidOf& pid_of);
/// `expect` with every {pid:NAME} replaced.
[[nodiscard]] vacate::Result<Expectations> with_pids(Expectations expect, const PidOf& pid_of);

/// What differs; empty if all is as expected. `shm_made` are the files that the case made in /dev/shm.
[[nodiscard]] std::vector<std::string> differences(const Expectations& expect, const Observation& seen,
                                                   const std::vector<ShmSpec>& shm_made);

}  // namespace lab
