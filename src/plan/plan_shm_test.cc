// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_shm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vacate {
namespace {

using ::testing::HasSubstr;
using V = ShmVerdict;

struct Found {
  ShmSnapshot snapshot;
  std::vector<ShmFinding> findings;
  void add(const std::string& family, V verdict, ShmKind kind = ShmKind::file) {
    auto& segment = snapshot.segments.emplace_back();
    segment.name = family + std::to_string(findings.size());
    segment.kind = kind;
    findings.push_back({family, "", {}, verdict, "because", {}});
  }
};

std::vector<std::string> names(const ShmPlan& plan) {
  std::vector<std::string> list;
  for (const auto& step : plan.steps) list.push_back(step.name);
  return list;
}

TEST(PlanShm, TakesTheUnusedAndNothingElse) {
  Found found;
  for (const auto verdict : {V::unused, V::in_use, V::too_young, V::unknown_family, V::not_ours, V::cannot_tell})
    found.add("python", verdict);
  EXPECT_EQ(names(plan_shm(found.snapshot, found.findings, {}, ShmSight::everybody)),
            std::vector<std::string>{"python0"});
}

TEST(PlanShm, NarrowsToFamiliesAndLeavesSystemVUnlessAsked) {
  Found found;
  found.add("python", V::unused);
  found.add("nccl", V::unused);
  found.add("", V::unused, ShmKind::sysv);
  ShmRequest request;
  request.families = {"nccl"};
  EXPECT_EQ(names(plan_shm(found.snapshot, found.findings, request, ShmSight::everybody)),
            std::vector<std::string>{"nccl1"});
  request.sysv = true;
  EXPECT_EQ(plan_shm(found.snapshot, found.findings, request, ShmSight::everybody).steps.size(), 2U);
}

TEST(PlanShm, APartialViewIsARefusalThatNamesTheWayOut) {
  Found found;
  found.add("python", V::unused);
  found.snapshot.visibility.blind_spots = {{"foreign-pid-namespace", "x"}};
  const auto plan = plan_shm(found.snapshot, found.findings, {}, ShmSight::not_everybody);
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_THAT(plan.refusal, HasSubstr("--assume-private"));
  EXPECT_EQ(exit_code_of(judge_clean(plan, {})), ExitCode::cannot_tell);
}

TEST(PlanShm, TheExitCodeFollowsFromTheResults) {
  ShmPlan plan;
  EXPECT_EQ(exit_code_of(judge_clean(plan, {})), ExitCode::done);
  plan.steps.resize(2);
  const auto code = [&](ShmStatus a, ShmStatus b) { return exit_code_of(judge_clean(plan, {{1, a, ""}, {2, b, ""}})); };
  EXPECT_EQ(code(ShmStatus::removed, ShmStatus::removed), ExitCode::done);
  EXPECT_EQ(code(ShmStatus::removed, ShmStatus::in_use), ExitCode::done);
  EXPECT_EQ(code(ShmStatus::changed, ShmStatus::already_gone), ExitCode::done);
  EXPECT_EQ(code(ShmStatus::removed, ShmStatus::denied), ExitCode::refused);
  EXPECT_EQ(code(ShmStatus::removed, ShmStatus::cannot_tell), ExitCode::cannot_tell);
  EXPECT_EQ(code(ShmStatus::removed, ShmStatus::skipped), ExitCode::holders_remain);
}

}  // namespace
}  // namespace vacate
