// SPDX-License-Identifier: Apache-2.0
#include "verify/release_budget.h"

#include <algorithm>

#include "verify/sighting.h"

namespace vacate {

Bytes pinned_memory_of(const Snapshot& snapshot, const Plan& plan) {
  Bytes sum;
  for (const auto& step : plan.steps) {
    const auto* process = is_ending(step.action) ? snapshot.find(step.key.pid) : nullptr;
    if (process != nullptr && is_same_process(process->key, step.key)) sum += process->pinned_memory.value_or(Bytes{0});
  }
  return sum;
}

std::chrono::milliseconds release_allowance(Bytes pinned) noexcept {
  static constexpr std::chrono::seconds kMost{600};
  const auto seconds = std::min<std::uint64_t>(pinned.count / gibibytes(4).count, kMost.count());
  return std::chrono::seconds(seconds);
}

}  // namespace vacate
