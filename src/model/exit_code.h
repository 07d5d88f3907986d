// SPDX-License-Identifier: Apache-2.0
// The exit codes of cli.md. Scripts rely on them; none changes its meaning.
#pragma once

namespace vacate {

enum class ExitCode : int {
  done = 0,            ///< the wanted state holds and was verified, or there was nothing to do
  holders_remain = 1,  ///< or the deadline passed, or memory is still being released
  usage = 2,
  refused = 3,
  cannot_tell = 4,
  held_by_nobody = 5,
  defect = 70,
};

}  // namespace vacate
