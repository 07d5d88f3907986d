// SPDX-License-Identifier: Apache-2.0
// The cases of tests/cases in which somebody owns the GPU, or may: nobody is ended unasked, and with --all, --unsure,
// --pid and --even exactly those that were asked for, softest first. Named as the cases are.
#include "stages.h"

namespace vacate::testing {
namespace {

using How = Hold::How;

TEST(LiveCases, AllWithLiveTreeAsksRootFirst) {
  TestMachine m(3);
  m.actor("api", {.listens = true}).actor("engine", {.parent = "api"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 50000});
  m.actor("tp1", {.parent = "engine"}).hold("tp1", {.gpus = {1}, .mib = 50000});
  m.actor("neighbour", {.listens = true}).hold("neighbour", {.gpus = {2}, .mib = 30000});
  const Stages stages(m);
  EXPECT_TRUE(stages.plan().empty());
  const auto plan = stages.plan(with_gpus({0, 1}, Scope::all));
  EXPECT_EQ(ended(plan), pids(m, {"api", "engine", "tp0", "tp1"}));
  EXPECT_EQ(plan.steps[0].key.pid, m.pid_of("api"));
  EXPECT_EQ(plan.steps[0].ask, Ask::at_once);
  EXPECT_EQ(plan.steps[0].rule, "root-of-tree");
  EXPECT_FALSE(plan.steps[0].holder);
  for (std::size_t i = 1; i < plan.steps.size(); ++i) EXPECT_EQ(plan.steps[i].ask, Ask::at_half_grace);
  EXPECT_EQ(stages.attribution.groups[0].owner->pid, m.pid_of("shell"));
}

TEST(LiveCases, PartOfALiveTreeDoesNotAskItsRoot) {
  TestMachine m(2);
  m.actor("api").actor("engine", {.parent = "api"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 50000});
  m.actor("tp1", {.parent = "engine"}).hold("tp1", {.gpus = {1}, .mib = 50000});
  EXPECT_EQ(ended(Stages(m).plan(with_gpus({0}, Scope::all))), pids(m, {"tp0"}))
      << "tp1 is in use and needs its parents";
  EXPECT_EQ(ended(Stages(m).plan(naming(m.pid_of("tp0")))), pids(m, {"tp0"}))
      << "who names a process does not name its parent";
}

TEST(LiveCases, SupervisorOfOtherWorkIsNeverRoot) {
  TestMachine agent;
  agent.actor("agent", {.parent = "init", .listens = true})
      .actor("job", {.parent = "agent"})
      .hold("job", {.mib = 8000});
  agent.actor("other", {.parent = "agent"});
  EXPECT_EQ(ended(Stages(agent).plan(with_scope(Scope::all))), pids(agent, {"job"}));
  TestMachine batch;
  batch.actor("batchd", {.parent = "init", .listens = true})
      .actor("job", {.parent = "batchd", .group = true})
      .hold("job", {.mib = 8000});
  EXPECT_EQ(ended(Stages(batch).plan(with_scope(Scope::all))), pids(batch, {"job"}));
  TestMachine other_session;
  other_session.actor("ci", {}).actor("job", {.parent = "ci", .session = true}).hold("job", {.mib = 8000});
  EXPECT_EQ(ended(Stages(other_session).plan(with_scope(Scope::all))), pids(other_session, {"job"}));
}

TEST(LiveCases, BackgroundJobsOfAFinishedScript) {
  TestMachine m(2);
  m.actor("script", {.argv = {"bash", "run_all.sh"}});
  for (unsigned i = 0; i < 2; ++i) {
    const auto name = "trainer" + std::to_string(i);
    m.actor(name, {.parent = "script", .pipe = false}).hold(name, {.gpus = {i}, .mib = 30000});
  }
  m.dies("script");
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("trainer0")).standing, Standing::unsure);
  EXPECT_TRUE(stages.plan().empty());
  EXPECT_EQ(ended(stages.plan(with_gpus({1}, Scope::unsure))), pids(m, {"trainer1"}));
  const auto& because = stages.holder(m.pid_of("trainer0")).because;
  EXPECT_TRUE(
      std::any_of(because.begin(), because.end(), [](const std::string& s) { return s.find("would") != s.npos; }));
}

TEST(LiveCases, Br016LiveServersUntouched) {
  TestMachine m(2);
  m.actor("manager", {.parent = "init"}).actor("lost_manager", {.parent = "init"});
  m.actor("server0", {.parent = "manager", .group = true, .pipe = false, .listens = true})
      .hold("server0", {.gpus = {0}, .mib = 70000});
  m.actor("server1", {.parent = "lost_manager", .group = true, .pipe = false, .listens = true})
      .hold("server1", {.gpus = {1}, .mib = 70000});
  m.dies("lost_manager");
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("server1")).standing, Standing::live);
  EXPECT_TRUE(stages.plan().empty());
}

// Manager and server are one group: the manager, a daemon of pid 1, is judged, and a listening member makes it a server
// set up to stay.
TEST(LiveCases, Br016ServerOfALiveManagerIsLiveBecauseTheGroupListens) {
  TestMachine m;
  m.actor("manager", {.parent = "init"});
  m.actor("server0", {.parent = "manager", .group = true, .pipe = false, .listens = true})
      .hold("server0", {.mib = 70000});
  EXPECT_EQ(Stages(m).holder(m.pid_of("server0")).standing, Standing::live);
}

TEST(LiveCases, Br019RayletAlive) {
  TestMachine m(2);
  m.actor("raylet", {.parent = "init", .listens = true}).actor("actor", {.parent = "raylet"});
  m.actor("engine", {.parent = "actor", .detached = true});
  for (unsigned i = 0; i < 2; ++i) {
    const auto name = "tp" + std::to_string(i);
    m.actor(name, {.parent = "engine", .detached = true}).hold(name, {.gpus = {i}, .mib = 50000});
  }
  EXPECT_TRUE(Stages(m).plan().empty());
  EXPECT_EQ(Stages(m).holder(m.pid_of("tp1")).standing, Standing::live);
}

TEST(LiveCases, Br003ContainersAndDaemon) {
  TestMachine m(4);
  m.actor("shim", {.parent = "init", .exe = "/usr/bin/containerd-shim-runc-v2", .subreaper = true});
  m.actor("entry", {.parent = "shim", .session = true});
  for (unsigned i = 0; i < 2; ++i)
    m.actor("stage" + std::to_string(i), {.parent = "entry"})
        .hold("stage" + std::to_string(i), {.gpus = {i}, .mib = 11264});
  m.actor("shim2", {.parent = "init", .exe = "/usr/bin/containerd-shim-runc-v2", .subreaper = true});
  m.actor("server2", {.parent = "shim2", .session = true, .listens = true}).hold("server2", {.gpus = {2}, .mib = 9000});
  m.actor("daemon", {.parent = "init", .listens = true})
      .hold("daemon", {.gpus = {3}, .mib = 7000})
      .dies("entry")
      .dies("shim");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"stage0", "stage1"}));
  EXPECT_EQ(stages.holder(m.pid_of("server2")).standing, Standing::live);
  EXPECT_EQ(stages.holder(m.pid_of("daemon")).standing, Standing::live);
}

TEST(LiveCases, Br053TwoContainersOneHost) {
  TestMachine m(4);
  for (unsigned i = 0; i < 2; ++i) {
    const auto n = std::to_string(i);
    m.actor("shim" + n, {.parent = "init", .exe = "/usr/bin/containerd-shim-runc-v2", .subreaper = true});
    m.actor("entry" + n, {.parent = "shim" + n, .session = true});
  }
  m.actor("cleanup", {.parent = "entry0"}).actor("job0", {.parent = "entry0", .group = true});
  for (unsigned i = 0; i < 2; ++i)
    m.actor("a" + std::to_string(i), {.parent = "job0"}).hold("a" + std::to_string(i), {.gpus = {i}, .mib = 30000});
  for (unsigned i = 0; i < 2; ++i)
    m.actor("b" + std::to_string(i), {.parent = "entry1"})
        .hold("b" + std::to_string(i), {.gpus = {2, 3}, .mib = 20000});
  m.dies("job0").run_from("cleanup");
  const auto plan = Stages(m).plan(with_gpus({0, 1}, Scope::all));
  EXPECT_EQ(ended(plan), pids(m, {"a0", "a1"}));
  EXPECT_TRUE(refused(plan).empty());
}

TEST(LiveCases, Br069PlainZombies) {
  TestMachine m;
  m.actor("agent", {.parent = "init", .listens = true})
      .actor("probe", {.parent = "agent"})
      .hold("probe", {.mib = 5000})
      .zombify("probe");
  const Stages stages(m);
  EXPECT_TRUE(stages.attribution.holders.empty());
  EXPECT_TRUE(stages.attribution.charged_to_nobody.empty());
  EXPECT_TRUE(stages.plan(with_scope(Scope::all)).empty());
}

TEST(LiveCases, Br089HeldByNobody) {
  TestMachine m(2, 46115);
  m.actor("hostengine", {.parent = "init", .exe = "/usr/bin/nv-hostengine"})
      .hold("hostengine", {.gpus = {0, 1}, .how = How::files});
  m.actor("exporter", {.parent = "init", .exe = "/usr/bin/dcgm-exporter", .listens = true})
      .hold("exporter", {.gpus = {0, 1}, .how = How::files});
  const Stages stages(m);
  EXPECT_TRUE(stages.plan(with_scope(Scope::all)).empty());
  EXPECT_EQ(*stages.attribution.accounts[0].remainder, mebibytes(46115 - 1024));
}

TEST(LiveCases, Br102Baselines) {
  TestMachine m(2, 600);
  const Stages stages(m);
  EXPECT_TRUE(stages.attribution.holders.empty());
  EXPECT_EQ(stages.attribution.accounts[1].baseline->amount, mebibytes(600));
  EXPECT_EQ(*stages.attribution.accounts[1].remainder, Bytes{0});
  EXPECT_TRUE(stages.plan().empty());
}

TEST(LiveCases, Br110StoppedByJobControl) {
  TestMachine m;
  m.actor("job", {.condition = Condition::stopped}).hold("job", {.mib = 22000});
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("job")).standing, Standing::live);
  EXPECT_TRUE(stages.plan().empty());
  const auto plan = stages.plan(naming(m.pid_of("job")));
  EXPECT_EQ(ended(plan), pids(m, {"job"}));
  EXPECT_NE(plan.steps[0].because.back().find("stopped"), std::string::npos);
}

TEST(LiveCases, Br111FrozenWorkerOfALiveContainer) {
  TestMachine m;
  m.actor("shim", {.parent = "init", .exe = "/usr/bin/containerd-shim-runc-v2", .subreaper = true});
  m.actor("entry", {.parent = "shim", .session = true})
      .actor("worker", {.parent = "entry", .condition = Condition::frozen});
  m.hold("worker", {.mib = 33000});
  EXPECT_EQ(Stages(m).holder(m.pid_of("worker")).standing, Standing::live);
  EXPECT_EQ(ended(Stages(m).plan(naming(m.pid_of("worker")))), pids(m, {"worker"}));
}

TEST(LiveCases, Br112OwnChainHoldsADevice) {
  TestMachine m;
  m.actor("agent", {.parent = "init", .listens = true}).hold("agent", {.mib = 6000});
  m.actor("sh", {.parent = "agent", .argv = {"bash", "-c", "vacate free --all"}}).hold("sh", {.how = How::files});
  m.actor("job", {.title = "VLLM::Worker_TP0"}).hold("job", {.mib = 8000}).run_from("sh");
  const Stages stages(m);
  const auto plan = stages.plan(with_scope(Scope::all));
  EXPECT_EQ(ended(plan), pids(m, {"job"}));
  EXPECT_EQ(refused(plan), pids(m, {"agent"})) << "the shell has no memory: left alone without a refusal";
  EXPECT_EQ(step_of(plan, m.pid_of("job")).ask, Ask::at_once);
  const auto forced = stages.plan(naming(m.pid_of("agent"), true));
  EXPECT_TRUE(ended(forced).empty());
  EXPECT_EQ(step_of(forced, m.pid_of("agent")).rule, "own-chain");
}

TEST(LiveCases, Br126RespawningSupervisor) {
  TestMachine m;
  m.actor("super", {.parent = "init", .listens = true})
      .actor("worker", {.parent = "super", .group = true})
      .hold("worker", {.mib = 20000});
  for (const auto& name : numbered("child", 4)) m.actor(name, {.parent = "worker"}).hold(name, {.mib = 5000});
  m.dies("worker").actor("worker", {.parent = "super", .group = true}).hold("worker", {.mib = 20000});
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, numbered("child", 4)));
  EXPECT_EQ(ended(stages.plan(naming(m.pid_of("worker")))), pids(m, {"worker"}));
}

TEST(LiveCases, Br149PersistenceDaemonProtected) {
  TestMachine m(2);
  m.actor("persist", {.parent = "init", .exe = "/usr/bin/nvidia-persistenced"})
      .hold("persist", {.gpus = {0, 1}, .how = How::files});
  m.actor("hostengine", {.parent = "init", .exe = "/usr/bin/nv-hostengine"})
      .hold("hostengine", {.gpus = {0, 1}, .how = How::files});
  m.actor("job").hold("job", {.gpus = {0, 1}, .mib = 30000});
  const Stages stages(m);
  const auto all = stages.plan(with_scope(Scope::all));
  EXPECT_EQ(ended(all), pids(m, {"job"}));
  EXPECT_TRUE(refused(all).empty());
  EXPECT_EQ(refused(stages.plan(naming(m.pid_of("persist")))), pids(m, {"persist"}));
  EXPECT_EQ(ended(stages.plan(naming(m.pid_of("persist"), true))), pids(m, {"persist"}));
}

TEST(LiveCases, ExportedMemoryOutlivesExporter) {
  TestMachine m;
  m.actor("launcher").actor("exporter", {.parent = "launcher"}).hold("exporter", {.mib = 500});
  m.actor("importer", {.parent = "launcher"})
      .hold("importer", {.mib = 300})
      .hold("importer", {.gpus = {}, .how = How::ctl})
      .dies("exporter");
  EXPECT_TRUE(Stages(m).plan().empty());
  m.dies("launcher");
  EXPECT_EQ(ended(Stages(m).plan()), pids(m, {"importer"}));
}

TEST(LiveCases, GarbagePidsIgnored) {
  TestMachine m;
  m.actor("launcher").actor("orphan", {.parent = "launcher"}).hold("orphan", {.mib = 30000}).dies("launcher");
  m.actor("nvtop").hold("nvtop", {.how = How::files});
  auto scan = m.snapshot();
  for (const pid_t pid : {0, 1, 4194305, 2147483647, -1})
    scan.charges.push_back({0, pid, mebibytes(100), {ContextKind::compute}});
  std::sort(scan.charges.begin(), scan.charges.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  const Stages stages(scan);
  EXPECT_EQ(ended(stages.plan(with_scope(Scope::all))), pids(m, {"orphan"}));
  EXPECT_EQ(stages.holder(m.pid_of("nvtop")).role, HolderRole::files);
  EXPECT_EQ(stages.attribution.charged_to_nobody.size(), 5U);
}

TEST(LiveCases, HolderOnTwoGpusOneSelected) {
  TestMachine m(4);
  m.actor("server").actor("orphan", {.parent = "server"}).hold("orphan", {.gpus = {2, 3}, .mib = 40000});
  m.actor("job").hold("job", {.gpus = {0, 1}, .mib = 30000}).dies("server");
  const Stages stages(m);
  const auto leftover = stages.plan(with_gpus({2}));
  EXPECT_EQ(ended(leftover), pids(m, {"orphan"}));
  const auto& because = leftover.steps[0].because;
  EXPECT_TRUE(std::any_of(because.begin(), because.end(),
                          [](const std::string& s) { return s.find("GPU 3 as well") != s.npos; }));
  const auto half = stages.plan(with_gpus({0}, Scope::all));
  EXPECT_TRUE(ended(half).empty());
  EXPECT_EQ(step_of(half, m.pid_of("job")).rule, "gpu-list");
  EXPECT_EQ(ended(stages.plan(with_gpus({0, 1}, Scope::all))), pids(m, {"job"}));
  auto named = naming(m.pid_of("job"));
  named.selection.gpus = {0};
  named.selection.all_gpus = false;
  EXPECT_EQ(ended(stages.plan(named)), pids(m, {"job"}));
}

TEST(LiveCases, PathOnlyIsNoHolder) {
  TestMachine m;
  m.actor("launcher").actor("walker", {.parent = "launcher"}).dies("launcher");
  EXPECT_TRUE(Stages(m).attribution.holders.empty());
}

TEST(LiveCases, NotRootSeesForeignersAndAsksNobodyElse) {
  TestMachine m(2);
  m.actor("bob_main", {.uid = 1001}).hold("bob_main", {.gpus = {1}, .mib = 12000}).run_from("shell", 1000);
  m.actor("alice_job", {.uid = 1000}).hold("alice_job", {.gpus = {0}, .mib = 500});
  const auto plan = Stages(m).plan(with_scope(Scope::all));
  EXPECT_EQ(ended(plan), pids(m, {"alice_job"}));
  EXPECT_EQ(step_of(plan, m.pid_of("bob_main")).rule, "not-yours");
}

}  // namespace
}  // namespace vacate::testing
