// SPDX-License-Identifier: Apache-2.0
// Waiting for a state that nothing announces: asked again and again until a deadline.
#pragma once

#include <poll.h>

#include "base/deadline.h"

namespace lab {

template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds wait = std::chrono::seconds(5)) {
  const auto deadline = vacate::Deadline::after(wait);
  while (!condition()) {
    if (deadline.passed()) return false;
    poll(nullptr, 0, 1);  // the pause between two questions
  }
  return true;
}

}  // namespace lab
