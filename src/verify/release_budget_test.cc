// SPDX-License-Identifier: Apache-2.0
#include "verify/release_budget.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

using namespace std::chrono_literals;

TEST(ReleaseAllowance, IsASecondForEach4GibibytesUpToTenMinutes) {
  EXPECT_EQ(release_allowance(Bytes{}), 0ms);
  EXPECT_EQ(release_allowance(Bytes{gibibytes(4).count - 1}), 0ms);
  EXPECT_EQ(release_allowance(gibibytes(4)), 1s);
  EXPECT_EQ(release_allowance(gibibytes(243)), 60s);
  EXPECT_EQ(release_allowance(gibibytes(2400)), 600s);
  EXPECT_EQ(release_allowance(Bytes{~std::uint64_t{0}}), 600s);
}

TEST(PinnedMemory, IsThatOfWhoeverEnds) {
  Snapshot snapshot;
  Plan plan;
  const auto add = [&](pid_t pid, Reading<Bytes> pinned, Action action) {
    Process process;
    process.key = {pid, 7, 0, 0};
    process.pinned_memory = pinned;
    snapshot.processes.push_back(process);
    Step step;
    step.key = process.key;
    step.action = action;
    plan.steps.push_back(step);
  };
  add(10, gibibytes(100), Action::signal);
  add(11, gibibytes(20), Action::stop_unit);
  add(12, gibibytes(3), Action::refuse);
  add(13, Unknown::failed, Action::signal);
  add(14, gibibytes(5), Action::signal);
  plan.steps.back().key.start_ticks = 8;  // another process has the number now
  EXPECT_EQ(pinned_memory_of(snapshot, plan), gibibytes(120));
}

}  // namespace
}  // namespace vacate
