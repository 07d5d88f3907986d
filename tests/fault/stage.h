// SPDX-License-Identifier: Apache-2.0
// Plays one `free` on a machine of the lab: eight leftovers that hold memory in every way, and beside them live
// processes that a failed look would take for left over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracer.h"

namespace fault {

struct Played {
  bool reached = false;               ///< the fault took place
  std::vector<std::string> wrong;     ///< what should not have been
  std::vector<Call> calls;            ///< where recording was asked for
  std::string ended;                  ///< how, for people
  std::optional<std::string> cannot;  ///< no machine could be made: why
};

/// What is wrong during a run.
struct Trouble {
  std::optional<Fault> fault;  ///< one call, or none
  std::string around = {};     ///< words of a shell that become the program at last: exec "$@"
};

[[nodiscard]] Played play(const Trouble& trouble, Record record);

/// `--trace FILE (count|FAULT) LIMIT_MS -- ARGV...`: what stands between the machine's shell and the program. Writes
/// the trace to FILE and ends as the program did.
[[nodiscard]] int trace_command(const std::vector<std::string>& words);

}  // namespace fault
