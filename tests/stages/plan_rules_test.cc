// SPDX-License-Identifier: Apache-2.0
// Rules of planning that no single case is about: selectors that name nothing, closure over clients, relatives, later
// rounds.
#include "stages.h"

#include <gmock/gmock.h>

namespace vacate::testing {
namespace {

using How = Hold::How;

std::string error_of(const Stages& stages, const FreeRequest& request) {
  const auto plan = plan_free(stages.snapshot, stages.attribution, request);
  if (plan) return "";
  EXPECT_EQ(plan.error().code, ErrorCode::malformed);
  return plan.error().message;
}

TEST(Selectors, ThatNameNothingAreErrors) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 1}).actor("idle");
  const Stages stages(m);
  EXPECT_EQ(error_of(stages, with_gpus({3})), "there is no GPU 3; `vacate status` lists them");
  EXPECT_EQ(error_of(stages, naming(4321)), "process 4321 does not exist");
  EXPECT_EQ(error_of(stages, naming(m.pid_of("idle"))), "process 1001 holds no GPU");
  auto other_start = naming(m.pid_of("job"));
  other_start.selection.pids[0].start_ticks = 7;
  EXPECT_EQ(error_of(stages, other_start), "process 1000 is another one than 1000@7: it is 1000@100000");
  FreeRequest even;
  even.even = {{4321, std::nullopt}};
  EXPECT_EQ(error_of(stages, even), "process 4321 does not exist");
}

TEST(Selectors, UserNarrows) {
  TestMachine m;
  m.actor("alices", {.uid = 1000}).hold("alices", {.mib = 1}).actor("bobs", {.uid = 1001}).hold("bobs", {.mib = 1});
  auto request = with_scope(Scope::all);
  request.selection.users = {1001};
  EXPECT_EQ(ended(Stages(m).plan(request)), pids(m, {"bobs"}));
}

const std::string kContainer = "/system.slice/docker-" + std::string(64, 'a') + ".scope";

Snapshot with_cgroup(Snapshot scan, pid_t pid, const std::string& cgroup) {
  for (auto& process : scan.processes)
    if (process.key.pid == pid) process.cgroup = cgroup;
  return scan;
}

std::string reason(const Plan& plan, pid_t pid) {
  const auto& step = step_of(plan, pid);
  EXPECT_EQ(step.rule, "not-your-own");
  return step.because.empty() ? "" : step.because.front();
}

TEST(Consent, LiveWorkOfOthersHasToBeNamed) {
  using ::testing::HasSubstr;
  TestMachine m;
  for (const auto* name : {"own", "boxed", "batch"})
    m.actor(name, {.parent = "init", .listens = true}).hold(name, {.mib = 1});
  m.actor("alices", {.parent = "init", .uid = 1000, .listens = true}).hold("alices", {.mib = 1});
  m.actor("main").actor("orphan", {.parent = "main", .uid = 1000}).hold("orphan", {.mib = 1}).dies("main");
  const auto alices = m.pid_of("alices"), boxed = m.pid_of("boxed"), batch = m.pid_of("batch");
  const Stages stages(with_cgroup(with_cgroup(m.snapshot(), boxed, kContainer), batch,
                                  "/system.slice/slurmstepd.scope/job_17/step_0/user/task_0"));
  auto all = with_scope(Scope::all);
  const auto plan = stages.plan(all);
  EXPECT_EQ(ended(plan), pids(m, {"own", "orphan"})) << "leftovers of anybody go for root";
  EXPECT_EQ(refused(plan), pids(m, {"alices", "boxed", "batch"}));
  EXPECT_THAT(reason(plan, alices), HasSubstr("user 1000, and --all alone ends nothing"));
  EXPECT_THAT(reason(plan, alices), HasSubstr("--user 1000, or --pid " + std::to_string(alices)));
  EXPECT_THAT(reason(plan, boxed), HasSubstr("add --container " + std::string(64, 'a') + ", or --pid"));
  EXPECT_THAT(reason(plan, batch), HasSubstr("add --job 17, or --pid"));
  all.selection.users = {1000};
  EXPECT_EQ(ended(stages.plan(all)), pids(m, {"alices", "orphan"}));
  all.selection.users = {};
  all.selection.containers = {std::string(12, 'a')};
  EXPECT_EQ(ended(stages.plan(all)), pids(m, {"boxed"}));
  all.selection.containers = {};
  all.selection.jobs = {"17"};
  EXPECT_EQ(ended(stages.plan(all)), pids(m, {"batch"}));
  EXPECT_EQ(ended(stages.plan(naming(alices))), pids(m, {"alices"}));
}

TEST(Consent, TheCallersOwnAreThoseOfHisLoginAndContainer) {
  TestMachine m;
  m.actor("alices", {.parent = "init", .uid = 1000, .listens = true}).hold("alices", {.mib = 1});
  m.actor("boxed", {.parent = "init", .listens = true}).hold("boxed", {.mib = 1});
  auto scan = with_cgroup(m.snapshot(), m.pid_of("boxed"), kContainer);
  const auto all = with_scope(Scope::all);
  const auto self = scan.caller.self.pid;
  const auto log_in = [&](std::optional<uid_t> uid) {
    for (auto& process : scan.processes)
      if (process.key.pid == self) process.login_uid = uid;
  };
  log_in(1000);
  EXPECT_EQ(ended(Stages(scan).plan(all)), pids(m, {"alices"})) << "sudo by alice";
  log_in(std::nullopt);
  scan = with_cgroup(scan, self, kContainer);
  EXPECT_EQ(ended(Stages(scan).plan(all)), pids(m, {"boxed"}));
  EXPECT_THAT(reason(Stages(scan).plan(all), m.pid_of("alices")),
              ::testing::HasSubstr("outside of the caller's container"));
}

TEST(Protected, LeftoverIsRefusedUnlessNamed) {
  TestMachine m;
  m.actor("launcher")
      .actor("vm", {.parent = "launcher", .exe = "/usr/bin/qemu-system-x86_64"})
      .hold("vm", {.mib = 1})
      .dies("launcher");
  const Stages stages(m);
  EXPECT_EQ(step_of(stages.plan(), m.pid_of("vm")).rule, "virtual-machine");
  FreeRequest even;
  even.even = {{m.pid_of("vm"), std::nullopt}};
  EXPECT_EQ(ended(stages.plan(even)), pids(m, {"vm"}));
}

TEST(Closure, NamedTrainerTakesItsLoadersAlong) {
  TestMachine m;
  m.actor("main", {.parent = "init", .listens = true}).hold("main", {.mib = 3000});
  for (const auto& name : numbered("loader", 2)) m.actor(name, {.parent = "main"}).inherit(name, "main");
  const auto plan = Stages(m).plan(naming(m.pid_of("main")));
  EXPECT_EQ(ended(plan), pids(m, {"main", "loader0", "loader1"}));
  EXPECT_EQ(plan.steps[0].key.pid, m.pid_of("main"));
  EXPECT_EQ(step_of(plan, m.pid_of("loader1")).rule, "same-client");
  EXPECT_EQ(step_of(plan, m.pid_of("loader1")).ask, Ask::at_half_grace);
}

TEST(Closure, SaysWhyOneLoaderAloneFreesNothing) {
  TestMachine m;
  m.actor("main", {.parent = "init", .listens = true}).hold("main", {.mib = 3000});
  for (const auto& name : numbered("loader", 2)) m.actor(name, {.parent = "main"}).inherit(name, "main");
  const auto plan = Stages(m).plan(naming(m.pid_of("loader0")));
  EXPECT_EQ(ended(plan), pids(m, {"loader0"}));
  const auto& because = plan.steps[0].because;
  EXPECT_TRUE(std::any_of(because.begin(), because.end(),
                          [](const std::string& s) { return s.find("stays until the last") != s.npos; }));
}

TEST(Relatives, AreKeptForHoldersThatStay) {
  TestMachine m(2);
  m.actor("api").actor("engine", {.parent = "api"}).hold("engine", {.gpus = {0, 1}, .how = How::files});
  m.actor("detokenizer", {.parent = "engine"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 1}).actor("helper0", {.parent = "tp0"});
  m.actor("tp1", {.parent = "engine"})
      .hold("tp1", {.gpus = {1}, .mib = 1})
      .actor("helper1", {.parent = "tp1"})
      .dies("api");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan(with_gpus({1}))), pids(m, {"tp1", "helper1"}));
  EXPECT_EQ(ended(stages.plan()), pids(m, {"engine", "detokenizer", "tp0", "tp1", "helper0", "helper1"}));
}

TEST(Relatives, OrphansBesideTheTreeGoOnlyWithAllOfIt) {
  TestMachine m(2);
  m.actor("api").actor("detokenizer", {.parent = "api"}).actor("stranger", {.parent = "api", .pipe = false});
  m.actor("tp0", {.parent = "api"}).hold("tp0", {.gpus = {0}, .mib = 1});
  m.actor("tp1", {.parent = "api"}).hold("tp1", {.gpus = {1}, .mib = 1}).dies("api");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan(with_gpus({0}))), pids(m, {"tp0"}));
  EXPECT_EQ(ended(stages.plan()), pids(m, {"tp0", "tp1", "detokenizer"}))
      << "nothing proves that the stranger's owner died";
}

// --- later rounds

Plan next_round(const Stages& before, const Plan& first, const Stages& now, const FreeRequest& request = {}) {
  return plan_next_round(now.snapshot, now.attribution, request, first, before.snapshot, before.attribution);
}

TEST(NextRound, NothingNewIsNothingToDo) {
  TestMachine m;
  m.actor("api").actor("worker", {.parent = "api"}).hold("worker", {.mib = 1}).dies("api");
  const Stages before(m);
  const auto first = before.plan();
  EXPECT_TRUE(next_round(before, first, before).empty()) << "who is being dealt with is not asked again";
  EXPECT_TRUE(next_round(before, first, Stages(m.dies("worker"))).empty());
}

TEST(NextRound, CopiesOfAWorkerBelongToIt) {
  TestMachine m;
  m.actor("api").actor("worker", {.parent = "api"}).hold("worker", {.mib = 1}).dies("api");
  const Stages before(m);
  const auto first = before.plan();
  m.actor("copy", {.parent = "worker"}).inherit("copy", "worker").dies("worker");
  const auto second = next_round(before, first, Stages(m));
  EXPECT_EQ(ended(second), pids(m, {"copy"}));
  EXPECT_EQ(second.steps[0].n, first.steps.size() + 1);
}

TEST(NextRound, CopiesOfANamedLiveJobToo) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 1});
  const Stages before(m);
  const auto request = naming(m.pid_of("job"));
  const auto first = before.plan(request);
  m.actor("copy", {.parent = "job"}).inherit("copy", "job").dies("job");
  EXPECT_EQ(ended(next_round(before, first, Stages(m), request)), pids(m, {"copy"}));
}

TEST(NextRound, NewcomersAndRestartedWorkersAreNotAsked) {
  TestMachine m;
  m.actor("super", {.parent = "init", .listens = true}).actor("worker", {.parent = "super"}).hold("worker", {.mib = 1});
  const Stages before(m);
  const auto request = naming(m.pid_of("worker"));
  const auto first = before.plan(request);
  m.dies("worker").actor("worker", {.parent = "super"}).hold("worker", {.mib = 1});
  m.actor("tenant").hold("tenant", {.mib = 1});
  EXPECT_TRUE(next_round(before, first, Stages(m), request).empty());
  EXPECT_TRUE(ended(next_round(before, first, Stages(m), with_scope(Scope::all))).empty());
}

TEST(NextRound, ChildrenOfOneThatStaysAreNotAsked) {
  TestMachine m(2);
  m.actor("script").actor("trainer0", {.parent = "script", .pipe = false}).hold("trainer0", {.gpus = {0}, .mib = 1});
  m.actor("trainer1", {.parent = "script", .pipe = false}).hold("trainer1", {.gpus = {1}, .mib = 1}).dies("script");
  const Stages before(m);
  const auto request = with_gpus({0}, Scope::unsure);
  const auto first = before.plan(request);
  EXPECT_EQ(ended(first), pids(m, {"trainer0"}));
  m.actor("intermediate", {.parent = "trainer1"})
      .actor("loader", {.parent = "intermediate", .pipe = false})
      .hold("loader", {.gpus = {0}, .mib = 1});
  m.dies("intermediate").dies("trainer0");
  EXPECT_TRUE(ended(next_round(before, first, Stages(m), with_gpus({0}))).empty());
}

TEST(NextRound, LeftoversThatItsOwnEndMade) {
  TestMachine m(2);
  m.actor("job")
      .hold("job", {.gpus = {0}, .mib = 1})
      .actor("rank", {.parent = "job"})
      .hold("rank", {.gpus = {0}, .mib = 1});
  const Stages before(m);
  const auto request = with_gpus({0}, Scope::all);
  auto first = before.plan(request);
  EXPECT_EQ(ended(first), pids(m, {"job", "rank"}));
  std::erase_if(first.steps, [&](const Step& step) { return step.key.pid == m.pid_of("rank"); });
  m.dies("job");
  EXPECT_EQ(ended(next_round(before, first, Stages(m), request)), pids(m, {"rank"}));
}

}  // namespace
}  // namespace vacate::testing
