// SPDX-License-Identifier: Apache-2.0
// What a policy file does to a plan.
#include "plan/assemble.h"
#include "stages.h"

namespace vacate::testing {
namespace {

using How = Hold::How;
using std::chrono::milliseconds;

struct Judged {
  Snapshot snapshot;
  Attribution attribution;

  Judged(Snapshot scan, const PolicyRule& rule) : snapshot(std::move(scan)) {
    Policy policy;
    policy.rules = {rule};
    attribution = attribute_holders(snapshot, policy);
  }
  [[nodiscard]] Plan plan(const FreeRequest& request = {}) const {
    return plan_free(snapshot, attribution, request).value_or(Plan{});
  }
};

PolicyRule for_workers() {
  PolicyRule rule;
  rule.name = "shop";
  rule.detail = "it sells things";
  rule.source = "p.toml:1";
  rule.exe = "/opt/worker";
  return rule;
}

TestMachine with_leftover() {
  TestMachine m;
  m.actor("launcher")
      .actor("worker", {.parent = "launcher", .exe = "/opt/worker"})
      .hold("worker", {.mib = 1000})
      .dies("launcher");
  return m;
}

TEST(PolicyInPlans, ProtectIsARefusalThatEvenLifts) {
  const auto m = with_leftover();
  const Judged judged(m.snapshot(), for_workers());
  const auto plan = judged.plan();
  EXPECT_EQ(ended(plan), pids(m, {}));
  EXPECT_EQ(step_of(plan, m.pid_of("worker")).rule, "shop");
  EXPECT_NE(step_of(plan, m.pid_of("worker")).because[0].find("it sells things (p.toml:1)"), std::string::npos);
  FreeRequest even;
  even.even = {{m.pid_of("worker"), std::nullopt}};
  EXPECT_EQ(ended(judged.plan(even)), pids(m, {"worker"}));
}

TEST(PolicyInPlans, ForbidIsLiftedByNothing) {
  const auto m = with_leftover();
  auto rule = for_workers();
  rule.forbid = true;
  const Judged judged(m.snapshot(), rule);
  EXPECT_EQ(ended(judged.plan(naming(m.pid_of("worker"), true))), pids(m, {}));
  EXPECT_EQ(refused(judged.plan(naming(m.pid_of("worker"), true))), pids(m, {"worker"}));
}

TEST(PolicyInPlans, TermsAreInTheStepAndInItsId) {
  const auto m = with_leftover();
  auto gentle = for_workers();
  gentle.term_only = true;
  auto slow = for_workers();
  slow.grace = milliseconds(60'000);
  const auto plain = Stages(m).plan();
  const auto by_term = Judged(m.snapshot(), gentle).plan();
  const auto later = Judged(m.snapshot(), slow).plan();
  EXPECT_TRUE(step_of(by_term, m.pid_of("worker")).terms.term_only);
  EXPECT_EQ(step_of(later, m.pid_of("worker")).terms.grace, milliseconds(60'000));
  EXPECT_NE(step_of(later, m.pid_of("worker")).because.back().find("at least 60 s"), std::string::npos);
  EXPECT_NE(by_term.id, plain.id);
  EXPECT_NE(by_term.id, later.id);
}

TEST(PolicyInPlans, AnOldPlanIsAnotherPlan) {
  const auto m = with_leftover();
  auto plan = Stages(m).plan();
  const auto before = plan_id(plan);
  plan.steps[0].terms.grace = milliseconds(0);
  EXPECT_NE(plan_id(plan), before);
}

Snapshot with_memory_of_nobody(const TestMachine& m) {
  auto scan = m.snapshot();
  scan.gpus[0].memory.used = *scan.gpus[0].memory.used + mebibytes(3000);
  return scan;
}

// The role is inferred from what is missing elsewhere, so it ends nobody whom somebody may own.
TEST(ImportersInPlans, EndOnlyAsProvenLeftovers) {
  TestMachine m;
  m.actor("exporter").actor("broker", {.parent = "exporter"}).hold("broker", {.how = How::ctl});
  Stages live(with_memory_of_nobody(m));
  ASSERT_EQ(live.holder(m.pid_of("broker")).role, HolderRole::importer);
  EXPECT_TRUE(live.plan(with_scope(Scope::all)).empty());
  m.dies("exporter");
  Stages orphan(with_memory_of_nobody(m));
  ASSERT_EQ(orphan.holder(m.pid_of("broker")).standing, Standing::leftover);
  EXPECT_EQ(ended(orphan.plan()), pids(m, {"broker"}));
  EXPECT_TRUE(Stages(m).plan().empty()) << "without memory to explain it has device files only";
}

}  // namespace
}  // namespace vacate::testing
