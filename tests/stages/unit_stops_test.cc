// SPDX-License-Identifier: Apache-2.0
// --stop-units: a service is stopped as a whole or not at all.
#include <gmock/gmock.h>

#include "plan/agreement.h"
#include "stages.h"

namespace vacate::testing {
namespace {

using How = Hold::How;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr const char* kGroup = "/system.slice/llm.service";

/// llm.service with Restart=always: an API server, which is its main process, and two workers below it.
class UnitStops : public ::testing::Test {
 protected:
  UnitStops() {
    m.actor("api", {.parent = "init", .listens = true}).hold("api", {.mib = 500});
    for (const auto& name : numbered("tp", 2)) m.actor(name, {.parent = "api"}).hold(name, {.mib = 30000});
    for (const auto& name : numbered("tp", 2, {"api"})) m.process(name).cgroup = kGroup;
  }

  [[nodiscard]] Snapshot scan() const {
    auto scan = m.snapshot();
    scan.services.answered = true;
    ServiceUnit unit;
    unit.name = "llm.service";
    unit.active_state = "active";
    unit.sub_state = "running";
    unit.restart = "always";
    unit.main_pid = m.pid_of("api");
    scan.services.units = {unit};
    return scan;
  }
  [[nodiscard]] static FreeRequest all() {
    auto request = with_scope(Scope::all);
    request.stop_units = true;
    return request;
  }
  /// What is said of `name`, which is refused together with everybody else.
  [[nodiscard]] std::string refusal(const Snapshot& snapshot, const FreeRequest& request,
                                    const std::string& name = "api") const {
    const auto plan = Stages(snapshot).plan(request);
    EXPECT_FALSE(plan.has_action(Action::stop_unit));
    const auto& step = step_of(plan, m.pid_of(name));
    EXPECT_EQ(step.action, Action::refuse);
    return step.because.empty() ? "" : step.because.front();
  }

  TestMachine m;
};

TEST_F(UnitStops, AServiceIsStoppedOnceForAllItsHolders) {
  const auto plan = Stages(scan()).plan(all());
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_THAT(plan.steps, Each(Field(&Step::action, Action::stop_unit)));
  EXPECT_THAT(plan.steps, Each(Field(&Step::unit, plan.steps[0].unit)));
  EXPECT_EQ(plan.steps[0].unit->name, "llm.service");
  EXPECT_EQ(plan.steps[0].unit->control_group, kGroup);
  EXPECT_EQ(plan.steps[0].unit->main, m.process("api").key);
}

TEST_F(UnitStops, WithoutTheOptionTheCommandIsGiven) {
  EXPECT_THAT(refusal(scan(), with_scope(Scope::all)), HasSubstr("systemctl stop llm.service"));
}

TEST_F(UnitStops, OnlyServicesThatWouldStartAgainAreStopped) {
  auto snapshot = scan();
  snapshot.services.units[0].restart = "no";
  const auto plan = Stages(snapshot).plan(all());
  EXPECT_FALSE(plan.has_action(Action::stop_unit));
  EXPECT_EQ(ended(plan), pids(m, {"api", "tp0", "tp1"}));
}

TEST_F(UnitStops, LeftoversOfAnInactiveServiceNeedNoStop) {
  auto snapshot = scan();
  snapshot.services.units[0].active_state = "failed";
  snapshot.services.units[0].main_pid = 0;
  const auto plan = Stages(snapshot).plan(all());
  EXPECT_FALSE(plan.has_action(Action::stop_unit));
  EXPECT_TRUE(plan.has_action(Action::signal));
}

TEST_F(UnitStops, AMemberThatIsNotMeantKeepsItRunning) {
  FreeRequest request = naming(m.pid_of("tp0"));
  request.stop_units = true;
  EXPECT_THAT(refusal(scan(), request, "tp0"), HasSubstr("is not meant"));
}

TEST_F(UnitStops, AProtectedMemberKeepsItRunning) {
  m.actor("vm", {.parent = "init", .exe = "/usr/bin/qemu-system-x86_64"}).hold("vm", {.mib = 1});
  m.process("vm").cgroup = std::string(kGroup) + "/payload";
  EXPECT_THAT(refusal(scan(), all()), HasSubstr("protected"));
}

TEST_F(UnitStops, AStrangerElsewhereDoesNot) {
  m.actor("stranger", {.listens = true}).hold("stranger", {.mib = 1});
  m.process("stranger").cgroup = "/user.slice/user-1000.slice/session-3.scope";
  FreeRequest request = all();
  request.selection.units = {"llm.service"};
  const auto plan = Stages(scan()).plan(request);
  EXPECT_TRUE(plan.has_action(Action::stop_unit));
  EXPECT_EQ(ended(plan), std::set<pid_t>{});
}

TEST_F(UnitStops, DeviceFilesAloneGoWithTheService) {
  m.actor("monitor", {.parent = "api"}).hold("monitor", {.how = How::files});
  m.process("monitor").cgroup = kGroup;
  const auto plan = Stages(scan()).plan(all());
  EXPECT_EQ(step_of(plan, m.pid_of("monitor")).action, Action::stop_unit);
  EXPECT_EQ(plan.steps.size(), 4U);
}

TEST_F(UnitStops, VacatesOwnServiceIsNeverStopped) {
  auto snapshot = scan();
  snapshot.caller.cgroups = {std::string(kGroup) + "/check"};
  EXPECT_THAT(refusal(snapshot, all()), HasSubstr("vacate itself"));
}

TEST_F(UnitStops, APolicyOnTheEndOfAMemberKeepsItRunning) {
  auto snapshot = scan();
  auto attribution = attribute_holders(snapshot, Policy{});
  attribution.holders[1].terms.term_only = true;
  const auto plan = plan_free(snapshot, attribution, all());
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->has_action(Action::stop_unit));
  EXPECT_FALSE(plan->has_action(Action::signal));
}

TEST_F(UnitStops, UnitsOfAUsersManagerAreNotAsked) {
  const std::string group = "/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service";
  for (const auto& name : numbered("tp", 2, {"api"})) m.process(name).cgroup = group;
  auto snapshot = m.snapshot();
  EXPECT_THAT(refusal(snapshot, all()), HasSubstr("systemctl --user stop llm.service"));
  EXPECT_EQ(ended(Stages(snapshot).plan(with_scope(Scope::all))), pids(m, {"api", "tp0", "tp1"}));
}

TEST_F(UnitStops, ServicesOfOthersWorkAreNoService) {
  auto snapshot = scan();
  for (auto& process : snapshot.processes)
    if (process.cgroup == kGroup) process.cgroup = "/system.slice/docker.service";
  snapshot.services.units[0].name = "docker.service";
  EXPECT_FALSE(Stages(snapshot).plan(all()).has_action(Action::stop_unit));
}

TEST_F(UnitStops, ThePlansIdTellsThemApart) {
  auto snapshot = scan();
  const auto one = Stages(snapshot).plan(all()).id;
  for (auto& process : snapshot.processes)
    if (process.cgroup == kGroup) process.cgroup = "/other.slice/llm.service";
  EXPECT_NE(Stages(snapshot).plan(all()).id, one);
}

TEST_F(UnitStops, WhoDidNotSeeEverybodyInAServiceDidNotAgreeToItsStop) {
  const Stages stages(scan());
  const auto fresh = stages.plan(all());
  const auto common = [&](const Plan& reviewed) {
    return agree(reviewed, fresh, stages.snapshot, stages.attribution, Newcomers::named).plan;
  };
  EXPECT_EQ(common(fresh), fresh);
  auto reviewed = fresh;
  reviewed.steps.pop_back();
  EXPECT_FALSE(common(reviewed).ends_anybody());
  reviewed = fresh;
  for (auto& step : reviewed.steps) step.unit->name = "other.service";
  EXPECT_FALSE(common(reviewed).ends_anybody());
}

/// A paused container: one leftover that is frozen, and what else is in its group.
class Frozen : public ::testing::Test {
 protected:
  Frozen() {
    m.actor("launcher").actor("worker", {.parent = "launcher", .condition = Condition::frozen});
    m.hold("worker", {.mib = 30000}).actor("entry", {.parent = "init"}).dies("launcher");
  }
  [[nodiscard]] Plan plan(Freezer freezer, const std::vector<std::string>& members, bool thaw) const {
    auto snapshot = m.snapshot();
    const auto found = pids(m, members);
    snapshot.frozen = {{"/docker/f1", freezer, std::vector<pid_t>(found.begin(), found.end())}};
    FreeRequest request;
    request.thaw = thaw;
    return Stages(snapshot).plan(request);
  }
  TestMachine m;
};

TEST_F(Frozen, Version1IsRefusedUnlessItMayBeThawed) {
  const auto kept = plan(Freezer::v1, {"worker"}, false);
  ASSERT_EQ(kept.steps.size(), 1U);
  EXPECT_EQ(kept.steps[0].action, Action::refuse);
  EXPECT_EQ(kept.steps[0].rule, "frozen");
  EXPECT_THAT(kept.steps[0].because.front(), HasSubstr("--thaw thaws /docker/f1"));
  const auto thawed = plan(Freezer::v1, {"worker"}, true);
  ASSERT_EQ(ended(thawed), pids(m, {"worker"}));
  EXPECT_EQ(thawed.steps[0].thaw, (ThawTarget{"/docker/f1", Freezer::v1}));
}

TEST_F(Frozen, AGroupWithOthersInItIsNotThawed) {
  const auto v1 = plan(Freezer::v1, {"worker", "entry"}, true);
  EXPECT_EQ(refused(v1), pids(m, {"worker"}));
  EXPECT_THAT(v1.steps[0].because.front(), HasSubstr(std::to_string(m.pid_of("entry"))));
  const auto v2 = plan(Freezer::v2, {"worker", "entry"}, true);
  EXPECT_EQ(ended(v2), pids(m, {"worker"}));
  EXPECT_FALSE(v2.steps[0].thaw);
  EXPECT_THAT(v2.steps[0].because, ::testing::Contains(HasSubstr("is not thawed")));
}

TEST_F(Frozen, Version2IsKilledAsItIsUnlessItMayBeThawed) {
  EXPECT_EQ(ended(plan(Freezer::v2, {"worker"}, false)), pids(m, {"worker"}));
  EXPECT_FALSE(plan(Freezer::v2, {"worker"}, false).steps.at(0).thaw);
  EXPECT_TRUE(plan(Freezer::v2, {"worker"}, true).steps.at(0).thaw);
}

TEST_F(Frozen, AGroupThatCannotBeSeenIsOfTheVersionThatItsStateTells) {
  auto snapshot = m.snapshot();
  EXPECT_EQ(ended(Stages(snapshot).plan()), pids(m, {"worker"}));
  for (auto& process : snapshot.processes)
    if (process.key.pid == m.pid_of("worker")) process.state = 'D';
  EXPECT_EQ(refused(Stages(snapshot).plan()), pids(m, {"worker"}));
}

TEST_F(UnitStops, WhoHoldsNothingAndIsAnotherUsersSparesTheService) {
  m.actor("guest", {.parent = "init", .uid = 1000});
  m.process("guest").cgroup = std::string(kGroup) + "/sub";
  EXPECT_THAT(refusal(scan(), all()), HasSubstr("of user "));
  m.process("guest").uid = Unknown::no_permission;
  EXPECT_THAT(refusal(scan(), all()), HasSubstr("is unknown"));
  m.process("guest").uid = 0U;
  EXPECT_TRUE(Stages(scan()).plan(all()).has_action(Action::stop_unit));
}

TEST_F(UnitStops, WhoHoldsNothingAndIsProtectedSparesTheService) {
  m.actor("daemon", {.parent = "init", .exe = "/usr/sbin/sshd"});
  m.process("daemon").cgroup = std::string(kGroup) + "/sub";
  EXPECT_THAT(refusal(scan(), all()), HasSubstr("which is protected"));
  m.process("daemon").exe = std::string("/home/a/sshd");
  EXPECT_TRUE(Stages(scan()).plan(all()).has_action(Action::stop_unit));
}

TEST_F(UnitStops, WhoHoldsNothingAndHasTermsOfAPolicySparesTheService) {
  m.actor("database", {.parent = "init", .exe = "/usr/bin/database"});
  m.process("database").cgroup = kGroup;
  Policy policy;
  PolicyRule rule;
  rule.name = "databases";
  rule.source = "p.toml:1";
  rule.exe = "/usr/bin/database";
  rule.term_only = true;
  policy.rules.push_back(rule);
  const auto snapshot = scan();
  const auto plan = plan_free(snapshot, attribute_holders(snapshot, policy), all());
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->has_action(Action::stop_unit));
  EXPECT_THAT(step_of(*plan, m.pid_of("api")).because.front(), HasSubstr("a policy says how"));
}

TEST_F(UnitStops, WhoIsAtWorkAtATerminalSparesTheService) {
  m.actor("editor", {.parent = "init"});
  m.process("editor").cgroup = kGroup;
  m.process("editor").tty = 34816;
  EXPECT_THAT(refusal(scan(), all()), HasSubstr("at work at a terminal"));
}

}  // namespace
}  // namespace vacate::testing
