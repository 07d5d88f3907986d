// SPDX-License-Identifier: Apache-2.0
// What has to be true after a `free` in which something failed, whatever it was. Pure: judges what was observed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/machine/machine.h"

namespace fault {

/// The machine's processes and memory at one moment.
struct Scene {
  std::vector<lab::ActorStatus> leftovers;
  std::vector<lab::ActorStatus> bystanders;
  std::vector<std::uint64_t> used_mib;
};

/// One run of the program.
struct Observed {
  int exit_code = -1;
  int signal = 0;                 ///< that ended it
  int expected_signal = 0;        ///< that it was sent; 0: none
  bool is_output_spoilt = false;  ///< a write of its own failed
  bool was_starting = false;      ///< before its main function: the loader speaks for it
  std::string out, err;
};

/// A line for each thing that is wrong. `free_mib`: the figures of the driver once everything left over has ended.
[[nodiscard]] std::vector<std::string> judge(const Observed& run, const Scene& before, const Scene& after,
                                             const std::vector<std::uint64_t>& free_mib);

/// The same for a run without a fault afterwards, which has to finish the work.
[[nodiscard]] std::vector<std::string> judge_rerun(const Observed& run, const Scene& before, const Scene& after,
                                                   const std::vector<std::uint64_t>& free_mib);

}  // namespace fault
