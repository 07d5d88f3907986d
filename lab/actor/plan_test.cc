// SPDX-License-Identifier: Apache-2.0
// Orders survive the way over the board, and bytes that end early are no crash.
#include "lab/actor/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lab {
namespace {

TEST(PlanTest, SurvivesPacking) {
  ActorPlan plan;
  plan.argv = {"python3", "", "a b"};
  plan.exe = "/usr/bin/bash";
  plan.slow_ms = 1U << 20U;
  plan.state = FinalState::zombie_leader;
  plan.pipe = true;
  HoldPlan hold;
  hold.gpus = {{0, 3}, {1, 2}};
  hold.bytes = 1ULL << 40U;
  hold.nodes = {"uvm", "gpu1"};
  hold.release_after_ms = -1;
  plan.holds = {hold, HoldPlan{}};
  Packer packer;
  packer(plan);

  ActorPlan back;
  Unpacker(packer.bytes())(back);
  EXPECT_EQ(back.argv, plan.argv);
  EXPECT_EQ(back.exe, plan.exe);
  EXPECT_EQ(back.slow_ms, plan.slow_ms);
  EXPECT_EQ(back.state, plan.state);
  EXPECT_TRUE(back.pipe);
  ASSERT_EQ(back.holds.size(), 2U);
  EXPECT_EQ(back.holds[0].gpus[1].minor, 2U);
  EXPECT_EQ(back.holds[0].bytes, hold.bytes);
  EXPECT_EQ(back.holds[0].nodes, hold.nodes);
  EXPECT_EQ(back.holds[0].release_after_ms, -1);
  Packer again;
  again(back);
  EXPECT_EQ(again.bytes(), packer.bytes());
}

TEST(PlanTest, EarlyEndGivesEmptyOrders) {
  ActorPlan plan;
  Unpacker("")(plan);
  EXPECT_THAT(plan.argv, ::testing::IsEmpty());
}

}  // namespace
}  // namespace lab
