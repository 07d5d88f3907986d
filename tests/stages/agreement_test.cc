// SPDX-License-Identifier: Apache-2.0
// What a reviewed plan and a fresh one of a later machine have in common.
#include "plan/agreement.h"

#include "stages.h"

namespace vacate::testing {
namespace {

/// Two orphans and a live job, each on its own.
TestMachine orphans() {
  TestMachine m;
  for (const auto& name : numbered("main", 2)) m.actor(name);
  for (const auto& name : numbered("rank", 2))
    m.actor(name, {.parent = "main" + name.substr(4)}).hold(name, {.mib = 1});
  m.actor("job", {.parent = "init", .listens = true}).hold("job", {.mib = 1});
  return m.dies("main0").dies("main1");
}

const StepResult* decided(const Agreement& agreement, pid_t pid) {
  for (const auto& result : agreement.decided)
    if (result.pid == pid) return &result;
  return nullptr;
}

TEST(Agreement, OfAPlanWithItselfIsThePlan) {
  const Stages stages(orphans());
  for (const auto scope : {Scope::leftovers, Scope::all}) {
    const auto plan = stages.plan(with_scope(scope));
    const auto agreement = agree(plan, plan, stages.snapshot, stages.attribution, Newcomers::named);
    EXPECT_EQ(agreement.plan, plan);
    EXPECT_TRUE(agreement.decided.empty() && agreement.aside.empty());
  }
}

TEST(Agreement, NeitherPlanAloneEndsAnybody) {
  const auto m = orphans();
  const Stages stages(m);
  const auto rank0 = m.pid_of("rank0"), rank1 = m.pid_of("rank1"), job = m.pid_of("job");
  auto reviewed = stages.plan(with_scope(Scope::all));
  std::erase_if(reviewed.steps, [&](const Step& step) { return step.key.pid == rank1; });
  const auto fresh = stages.plan();
  const auto agreement = agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_EQ(ended(agreement.plan), std::set<pid_t>{rank0});
  ASSERT_TRUE(decided(agreement, job) && decided(agreement, rank1));
  EXPECT_EQ(step_of(agreement.plan, job).rule, kNotPlannedNow);
  EXPECT_EQ(decided(agreement, job)->status, StepStatus::skipped);
  EXPECT_EQ(decided(agreement, job)->detail, "a fresh plan with these options does not end it: it is live");
  EXPECT_EQ(step_of(agreement.plan, rank1).rule, kNotReviewed);
  EXPECT_EQ(agreement.aside, std::vector<unsigned>{step_of(agreement.plan, rank1).n});
  for (std::size_t i = 0; i < agreement.plan.steps.size(); ++i) EXPECT_EQ(agreement.plan.steps[i].n, i + 1);
  const auto shown = agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::left_to_rounds);
  EXPECT_EQ(ended(shown.plan), std::set<pid_t>{rank0});
  EXPECT_EQ(refused(shown.plan), std::set<pid_t>{job}) << "who came since is for a later round";
}

TEST(Agreement, ALeftoverIsLeftOutByTheOptions) {
  const auto m = orphans();
  const Stages stages(m);
  const auto reviewed = stages.plan();
  auto fresh = reviewed;
  std::erase_if(fresh.steps, [&](const Step& step) { return step.key.pid == m.pid_of("rank1"); });
  const auto agreement = agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::named);
  ASSERT_TRUE(decided(agreement, m.pid_of("rank1")));
  EXPECT_TRUE(
      decided(agreement, m.pid_of("rank1"))->detail.starts_with("a fresh plan with these options leaves it out"));
}

TEST(Agreement, KeysAreWholeKeys) {
  const auto m = orphans();
  const Stages stages(m);
  const auto rank0 = m.pid_of("rank0");
  const auto fresh = stages.plan();
  auto other_start = fresh;
  other_start.steps[0].key.start_ticks += 1;
  auto agreement = agree(other_start, fresh, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_FALSE(ended(agreement.plan).contains(rank0));
  EXPECT_EQ(agreement.decided[0].status, StepStatus::identity_changed);
  auto other_inode = fresh;
  auto now = fresh;
  other_inode.steps[0].key.pidfd_inode = 7;
  now.steps[0].key.pidfd_inode = 8;
  agreement = agree(other_inode, now, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_FALSE(ended(agreement.plan).contains(rank0)) << "recycled within one tick";
  now.steps[0].key.pidfd_inode = 0;
  agreement = agree(other_inode, now, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_TRUE(ended(agreement.plan).contains(rank0)) << "a kernel that has none";
}

TEST(Agreement, WhoIsGoneIsGone) {
  const auto m = orphans();
  const Stages before(m);
  auto later = orphans();
  later.dies("rank0");
  const Stages now(later);
  const auto agreement = agree(before.plan(), now.plan(), now.snapshot, now.attribution, Newcomers::named);
  EXPECT_EQ(ended(agreement.plan), pids(m, {"rank1"}));
  ASSERT_TRUE(decided(agreement, m.pid_of("rank0")));
  EXPECT_EQ(decided(agreement, m.pid_of("rank0"))->status, StepStatus::already_gone);
  EXPECT_EQ(step_of(agreement.plan, m.pid_of("rank0")).rule, kAlreadyGone);
  auto hidden = now;
  hidden.snapshot.visibility.blind_spots.push_back({"hidepid", ""});
  const auto cannot_say = agree(before.plan(), now.plan(), hidden.snapshot, now.attribution, Newcomers::named);
  EXPECT_EQ(decided(cannot_say, m.pid_of("rank0"))->status, StepStatus::skipped) << "not seen is not gone";
}

TEST(Agreement, WhoHasLetGoIsAsGoodAsGone) {
  const auto m = orphans();
  const Stages before(m);
  const auto rank0 = m.pid_of("rank0");
  auto scan = m.snapshot();
  std::erase_if(scan.references, [&](const Reference& reference) { return reference.pid == rank0; });
  std::erase_if(scan.charges, [&](const DriverCharge& charge) { return charge.pid == rank0; });
  const Stages now(scan);
  const auto agreement = agree(before.plan(), now.plan(), now.snapshot, now.attribution, Newcomers::named);
  EXPECT_EQ(ended(agreement.plan), pids(m, {"rank1"}));
  ASSERT_TRUE(decided(agreement, rank0));
  EXPECT_EQ(decided(agreement, rank0)->status, StepStatus::identity_changed);
  scan.visibility.all_references = false;
  const Stages half_seen(scan);
  const auto cannot_say =
      agree(before.plan(), half_seen.plan(), half_seen.snapshot, half_seen.attribution, Newcomers::named);
  EXPECT_EQ(decided(cannot_say, rank0)->status, StepStatus::skipped) << "not seen to hold is not let go";
  EXPECT_EQ(decided(cannot_say, rank0)->detail,
            "a fresh plan does not end it: whether it holds a GPU cannot be seen from here now");
}

TEST(Agreement, AnotherActionIsNoneThatWasReviewed) {
  const auto m = orphans();
  const Stages stages(m);
  const auto fresh = stages.plan();
  const auto rank0 = m.pid_of("rank0");
  for (const auto action : {Action::refuse, Action::unlink, Action::stop_unit}) {
    auto reviewed = fresh;
    reviewed.steps[0].action = action;
    const auto agreement = agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::named);
    EXPECT_EQ(ended(agreement.plan), pids(m, {"rank1"}));
    ASSERT_TRUE(decided(agreement, rank0));
    EXPECT_EQ(decided(agreement, rank0)->status, StepStatus::skipped);
    EXPECT_EQ(agreement.plan.steps.size(), 2U) << "one step a process";
  }
  auto refused_now = fresh;
  refused_now.steps[0].action = Action::refuse;
  const auto agreement = agree(fresh, refused_now, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_EQ(refused(agreement.plan), std::set<pid_t>{rank0});
  EXPECT_FALSE(decided(agreement, rank0)) << "a refusal of now counts as one";
}

TEST(Agreement, TheStricterTermsCount) {
  const auto m = orphans();
  const Stages stages(m);
  auto reviewed = stages.plan();
  reviewed.steps[0].terms.term_only = true;
  reviewed.steps[1].terms.grace = std::chrono::minutes(5);
  auto fresh = stages.plan();
  fresh.steps[1].terms.grace = std::chrono::minutes(9);
  const auto agreement = agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::named);
  EXPECT_TRUE(agreement.plan.steps[0].terms.term_only);
  EXPECT_EQ(agreement.plan.steps[1].terms.grace, std::chrono::minutes(9));
}

TEST(Agreement, IsOfOneBootAndOnePidNamespace) {
  Plan plan;
  EXPECT_FALSE(check_same_machine(plan, plan)) << "nobody knows where it is";
  plan.boot_id = "a";
  plan.pid_namespace = 7;
  EXPECT_TRUE(check_same_machine(plan, plan));
  auto other = plan;
  other.boot_id = "b\x1b";
  const auto boot = check_same_machine(other, plan);
  ASSERT_FALSE(boot);
  EXPECT_EQ(boot.error().code, ErrorCode::refused);
  EXPECT_EQ(boot.error().message, "the plan was made in another boot (b\\x1b, this is a): make a new one");
  other = plan;
  other.pid_namespace = 8;
  EXPECT_EQ(check_same_machine(other, plan).error().code, ErrorCode::refused);
}

}  // namespace
}  // namespace vacate::testing
