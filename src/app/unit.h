// SPDX-License-Identifier: Apache-2.0
// `vacate unit` as compositions: find, read, lint; look at the unit and the driver, make a drop-in, install it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/driver_session.h"
#include "model/unit_lint.h"

namespace vacate {

/// `subject`: a name, or a file if it has a slash in it. malformed: neither, or it cannot be read.
[[nodiscard]] Result<UnitLint> lint_unit_of(const std::string& subject);

struct DropinAsked {
  std::string unit;
  std::vector<std::string> gpus;  ///< words of --gpu, one at least
  std::chrono::milliseconds wait{300'000};
  bool install = false;
};

/// GPUs are written by UUID if the driver answers, else as they were given. refused: the program or the place is
/// somebody else's to write, or a drop-in of somebody else is there. malformed: the words.
[[nodiscard]] Result<UnitDropin> make_dropin(const DropinAsked& asked, DriverSession& driver);

}  // namespace vacate
