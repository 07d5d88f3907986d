// SPDX-License-Identifier: Apache-2.0
// The cases of tests/cases in which somebody is left over, as snapshots: who goes, who stays, and in what role. Named
// as the cases are.
#include "stages.h"

namespace vacate::testing {
namespace {

using How = Hold::How;
constexpr unsigned kAll[] = {0, 1, 2, 3, 4, 5, 6, 7};
const std::vector<unsigned> kEight(std::begin(kAll), std::end(kAll));

TEST(OrphanCases, IncidentStubborn96Gib) {
  TestMachine m(8, 0);
  m.actor("api", {.argv = {"python3", "-m", "vllm.entrypoints.openai.api_server"}});
  m.actor("engine", {.parent = "api", .title = "VLLM::EngineCore"}).hold("engine", {.gpus = kEight, .how = How::files});
  m.actor("tracker", {.parent = "engine",
                      .argv = {"python3", "-c", "from multiprocessing.resource_tracker import main;main(93)"}});
  for (unsigned i = 0; i < 8; ++i) {
    const auto name = "tp" + std::to_string(i);
    m.actor(name, {.parent = "engine", .title = "VLLM::Worker_TP"}).hold(name, {.gpus = {i}, .mib = 96610});
  }
  m.actor("monitor").hold("monitor", {.gpus = kEight, .how = How::files});
  m.actor("notebook").dies("api");
  const Stages stages(m);
  const auto plan = stages.plan();
  EXPECT_EQ(ended(plan), pids(m, numbered("tp", 8, {"engine", "tracker"})));
  EXPECT_TRUE(refused(plan).empty());
  EXPECT_EQ(plan.steps.front().key.pid, m.pid_of("engine")) << "the root of the tree is asked first";
  EXPECT_EQ(plan.steps.back().key.pid, m.pid_of("tracker"));
  EXPECT_EQ(step_of(plan, m.pid_of("tracker")).ask, Ask::after_others);
  EXPECT_EQ(step_of(plan, m.pid_of("tp3")).ask, Ask::at_once);
  EXPECT_EQ(stages.holder(m.pid_of("engine")).role, HolderRole::files);
  EXPECT_EQ(stages.holder(m.pid_of("monitor")).standing, Standing::live);
  EXPECT_EQ(stages.attribution.accounts[3].attributed, mebibytes(96610));
}

TEST(OrphanCases, IncidentOneHolderFourGpus) {
  TestMachine m(8, 0);
  m.actor("server").actor("engine", {.parent = "server"}).hold("engine", {.gpus = kEight, .mib = 96844});
  m.actor("helper", {.parent = "engine", .title = "kineto-io"});
  m.inherit("helper", "engine", {TestMachine::kUvm, m.gpu_node(0), m.gpu_node(1), m.gpu_node(2), m.gpu_node(3)});
  m.actor("editor", {.argv = {"vim", "/home/dev/vllm/entrypoints/python3_notes.py"}});
  m.actor("persist", {.parent = "init", .exe = "/usr/bin/nvidia-persistenced"})
      .hold("persist", {.gpus = kEight, .how = How::files});
  m.dies("server").dies("engine");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"helper"}));
  const auto& helper = stages.holder(m.pid_of("helper"));
  EXPECT_EQ(helper.role, HolderRole::inheritor);
  ASSERT_EQ(helper.gpus.size(), 8U) << "any part of a client keeps it on all its GPUs";
  EXPECT_EQ(helper.gpus[7].evidence.front().kind, EvidenceKind::inherited_client);
  EXPECT_FALSE(helper.gpus[7].memory.known());
  EXPECT_EQ(stages.holder(m.pid_of("persist")).role, HolderRole::files);
  EXPECT_EQ(ended(stages.plan(with_gpus({7}))), pids(m, {"helper"}));
  EXPECT_EQ(stages.attribution.charged_to_nobody.size(), 8U);
  EXPECT_EQ(stages.attribution.charged_to_nobody[5].inheritors, std::vector<pid_t>{m.pid_of("helper")});
}

TEST(OrphanCases, Br001SubreaperShell) {
  TestMachine m(3);
  m.actor("term", {.parent = "init", .argv = {"-bash"}, .exe = "/bin/bash", .subreaper = true});
  m.actor("api", {.parent = "term", .group = true, .listens = true}).actor("engine", {.parent = "api"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 13312});
  m.actor("tp1", {.parent = "engine"}).hold("tp1", {.gpus = {1}, .mib = 13312});
  m.actor("other", {.parent = "term", .group = true}).hold("other", {.gpus = {2}, .mib = 20000}).dies("api");
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("tp0")).standing, Standing::leftover);
  EXPECT_EQ(stages.holder(m.pid_of("other")).standing, Standing::live);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"engine", "tp0", "tp1"}));
}

TEST(OrphanCases, Br008WorkersIgnoreTerm) {
  TestMachine m(2);
  m.actor("api").actor("engine", {.parent = "api"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 60000});
  m.actor("tp1", {.parent = "engine"}).hold("tp1", {.gpus = {1}, .mib = 60000}).dies("api").dies("engine");
  EXPECT_EQ(ended(Stages(m).plan()), pids(m, {"tp0", "tp1"}));
}

TEST(OrphanCases, Br010DesktopAndOneOrphan) {
  TestMachine m;
  m.actor("xorg", {.parent = "init", .exe = "/usr/lib/xorg/Xorg"}).hold("xorg", {.mib = 207, .how = How::graphics});
  m.actor("gnome", {.parent = "init", .exe = "/usr/bin/gnome-shell", .uid = 1000})
      .hold("gnome", {.mib = 164, .how = How::graphics});
  for (const auto& app : numbered("app", 4))
    m.actor(app, {.parent = "gnome", .uid = 1000, .group = true}).hold(app, {.mib = 50, .how = How::graphics});
  m.actor("frontend", {.uid = 1000})
      .actor("sched", {.parent = "frontend", .uid = 1000})
      .hold("sched", {.mib = 18000})
      .dies("frontend");
  const Stages stages(m);
  const auto plan = stages.plan();
  EXPECT_EQ(ended(plan), pids(m, {"sched"}));
  EXPECT_TRUE(refused(plan).empty()) << "nobody asked for the desktop to end";
  EXPECT_EQ(stages.holder(m.pid_of("app0")).standing, Standing::live);
}

TEST(OrphanCases, Br011SameTitlesTwoGroups) {
  TestMachine m(3);
  for (const std::string server : {"serverA", "serverB"}) {
    m.actor(server, {.listens = true});
    for (unsigned i = 0; i < 3; ++i) {
      const auto name = (server == "serverA" ? "a" : "b") + std::to_string(i);
      m.actor(name, {.parent = server, .detached = true, .pipe = true}).hold(name, {.gpus = {i}, .mib = 30000});
    }
  }
  m.dies("serverA");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, numbered("a", 3)));
  EXPECT_EQ(stages.holder(m.pid_of("b1")).standing, Standing::live);
  EXPECT_EQ(stages.attribution.groups.size(), 2U);
}

TEST(OrphanCases, Br022LoaderChildrenInherit) {
  TestMachine m;
  m.actor("main").hold("main", {.mib = 5120});
  for (const auto& name : numbered("loader", 4)) m.actor(name, {.parent = "main"}).inherit(name, "main");
  m.actor("main2", {.parent = "init", .listens = true}).hold("main2", {.mib = 3000});
  for (const auto& name : numbered("other", 2)) m.actor(name, {.parent = "main2"}).inherit(name, "main2");
  m.dies("main");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, numbered("loader", 4)));
  EXPECT_EQ(stages.holder(m.pid_of("loader0")).role, HolderRole::inheritor);
  EXPECT_EQ(stages.holder(m.pid_of("other0")).role, HolderRole::inheritor);
  EXPECT_EQ(stages.holder(m.pid_of("other0")).standing, Standing::live);
  ASSERT_EQ(stages.attribution.charged_to_nobody.size(), 1U);
  EXPECT_EQ(stages.attribution.charged_to_nobody[0].inheritors.size(), 4U) << "main2's loaders are explained by main2";
}

TEST(OrphanCases, Br039DriverNamesDeadPidReused) {
  TestMachine m;
  m.actor("agent").actor("run", {.parent = "agent"}).hold("run", {.mib = 10240});
  for (const auto& name : numbered("loader", 2)) m.actor(name, {.parent = "run"}).inherit(name, "run");
  const auto reused = m.pid_of("run");
  m.dies("agent").dies("run").actor("stranger");
  auto scan = m.snapshot();
  for (auto& charge : scan.charges) {
    if (charge.pid == reused) charge.pid = m.pid_of("stranger");
  }
  const Stages stages(scan);
  EXPECT_EQ(ended(stages.plan()), pids(m, numbered("loader", 2)));
  EXPECT_EQ(stages.attribution.find(m.pid_of("stranger")), nullptr);
  EXPECT_NE(stages.attribution.charged_to_nobody[0].detail.find("another process now"), std::string::npos);
}

TEST(OrphanCases, Br046FiftyOneDescriptors) {
  TestMachine m;
  m.actor("launcher").actor("rank", {.parent = "launcher"}).hold("rank", {.mib = 1135});
  m.actor("writer", {.parent = "rank"}).inherit("writer", "rank").dies("rank").dies("launcher");
  const Stages stages(m);
  EXPECT_EQ(stages.attribution.holders.size(), 1U);
  EXPECT_EQ(stages.holder(m.pid_of("writer")).role, HolderRole::inheritor);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"writer"}));
}

TEST(OrphanCases, Br060ZombieOwnerLiveChild) {
  TestMachine m(2);
  m.actor("script").actor("trainer", {.parent = "script", .group = true});
  m.hold("trainer", {.gpus = {0}, .mib = 5371}).hold("trainer", {.gpus = {1}, .mib = 1011});
  m.actor("io", {.parent = "trainer"}).inherit("io", "trainer");
  m.actor("server", {.parent = "init", .listens = true}).hold("server", {.gpus = {1}, .mib = 2000}).zombify("trainer");
  const Stages stages(m);
  EXPECT_EQ(stages.attribution.holders.size(), 2U);
  EXPECT_EQ(stages.holder(m.pid_of("io")).role, HolderRole::inheritor);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"io"}));
}

TEST(OrphanCases, Br063ZombieLeaderLiveThread) {
  TestMachine m;
  m.actor("main").hold("main", {.mib = 40000});
  m.actor("worker", {.parent = "main"}).inherit("worker", "main", {}, EvidenceKind::thread_descriptor).dies("main");
  auto& worker = m.process("worker");
  worker.state = 'Z';
  worker.threads = 2;
  worker.condition = Condition::zombie_leader;
  worker.exe = Unknown::failed;
  worker.argv = Unknown::failed;
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("worker")).standing, Standing::leftover);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"worker"}));
}

TEST(OrphanCases, Br160HundredAndTwentySixInheritors) {
  TestMachine m(8);
  m.actor("launcher");
  std::vector<std::string> loaders;
  for (unsigned r = 0; r < 7; ++r) {
    const auto rank = "rank" + std::to_string(r);
    m.actor(rank, {.parent = "launcher"})
        .hold(rank, {.gpus = {r}, .mib = 39936})
        .hold(rank, {.gpus = kEight, .how = How::files});
    for (unsigned w = 0; w < 18; ++w) {
      loaders.push_back("r" + std::to_string(r) + "w" + std::to_string(w));
      m.actor(loaders.back(), {.parent = rank, .title = "pt_data_worker"}).inherit(loaders.back(), rank);
    }
  }
  m.actor("server", {.parent = "init", .listens = true}).hold("server", {.gpus = {7}, .mib = 9000});
  for (unsigned r = 0; r < 7; ++r) m.dies("rank" + std::to_string(r));
  m.dies("launcher");
  const Stages stages(m);
  EXPECT_EQ(stages.attribution.holders.size(), 127U);
  EXPECT_EQ(stages.attribution.groups.size(), 2U);
  EXPECT_EQ(stages.attribution.accounts[7].holders.size(), 127U);
  EXPECT_EQ(ended(stages.plan()), pids(m, loaders));
}

TEST(OrphanCases, ManagedMemoryNotAttributed) {
  TestMachine m;
  m.actor("launcher").actor("orphan", {.parent = "launcher"}).hold("orphan", {.mib = 300}).dies("launcher");
  auto scan = m.snapshot();
  scan.gpus[0].memory.used = mebibytes(60304);
  const Stages stages(scan);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"orphan"}));
  EXPECT_EQ(stages.attribution.accounts[0].baseline->amount, gibibytes(1)) << "assumed, and never more than that";
  EXPECT_EQ(*stages.attribution.accounts[0].remainder, mebibytes(60004 - 1024));
}

TEST(OrphanCases, MappedOnly) {
  TestMachine m(2);
  m.actor("main").hold("main", {.gpus = {0}, .mib = 30000});
  m.actor("child", {.parent = "main"}).inherit("child", "main", {m.gpu_node(0)}, EvidenceKind::mapping);
  m.actor("own", {.parent = "main"}).hold("own", {.gpus = {1}, .mib = 20000, .how = How::mapped});
  m.actor("bystander", {.parent = "init", .listens = true}).hold("bystander", {.gpus = {1}, .mib = 2000}).dies("main");
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("child")).role, HolderRole::inheritor);
  EXPECT_EQ(stages.holder(m.pid_of("own")).role, HolderRole::context);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"child", "own"}));
}

TEST(OrphanCases, MinorIsNotIndex) {
  TestMachine m(2);
  m.set_minors({1, 0});
  for (unsigned i = 0; i < 2; ++i) {
    const auto n = std::to_string(i);
    m.actor("main" + n).hold("main" + n, {.gpus = {i}, .mib = 20000}).actor("loader" + n, {.parent = "main" + n});
    m.inherit("loader" + n, "main" + n).dies("main" + n);
  }
  const Stages stages(m);
  EXPECT_EQ(stages.attribution.accounts[0].holders, std::vector<pid_t>{m.pid_of("loader0")});
  EXPECT_EQ(stages.holder(m.pid_of("loader0")).gpus[0].evidence[0].node, "/dev/nvidia1");
  EXPECT_EQ(ended(stages.plan(with_gpus({0}))), pids(m, {"loader0"}));
}

TEST(OrphanCases, UvmDescriptorOnly) {
  TestMachine m;
  m.actor("main")
      .hold("main", {.mib = 39936})
      .actor("loader", {.parent = "main"})
      .inherit("loader", "main", {TestMachine::kUvm});
  m.actor("server", {.parent = "init", .listens = true}).hold("server", {.mib = 5000}).dies("main");
  const Stages stages(m);
  EXPECT_EQ(stages.holder(m.pid_of("loader")).role, HolderRole::inheritor);
  EXPECT_EQ(stages.holder(m.pid_of("loader")).gpus.size(), 1U);
  EXPECT_EQ(ended(stages.plan(with_gpus({0}))), pids(m, {"loader"}));
}

TEST(OrphanCases, OrphanThatStillListens) {
  TestMachine m(3);
  m.actor("api", {.listens = true});
  m.actor("rank0", {.parent = "api", .listens = true}).hold("rank0", {.gpus = {0}, .mib = 40000});
  m.actor("rank1", {.parent = "api"}).hold("rank1", {.gpus = {1}, .mib = 40000});
  m.actor("starter").actor("llama", {.parent = "starter", .session = true, .pipe = false, .listens = true});
  m.hold("llama", {.gpus = {2}, .mib = 9000}).dies("api").dies("starter");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"rank0", "rank1"}));
  EXPECT_EQ(stages.holder(m.pid_of("llama")).standing, Standing::live);
}

TEST(OrphanCases, LoadersOfOneDeadTrainer) {
  TestMachine m(2);
  m.actor("script", {.argv = {"bash", "run_all.sh"}});
  for (unsigned i = 0; i < 2; ++i) {
    const auto name = "trainer" + std::to_string(i);
    m.actor(name, {.parent = "script", .pipe = false}).hold(name, {.gpus = {i}, .mib = 30000});
  }
  m.actor("files", {.parent = "script", .pipe = false});
  for (const auto& name : numbered("loader", 3)) m.actor(name, {.parent = "trainer0"}).inherit(name, "trainer0");
  m.dies("script").dies("trainer0");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan()), pids(m, numbered("loader", 3)));
  EXPECT_EQ(stages.holder(m.pid_of("trainer1")).standing, Standing::unsure);
}

TEST(OrphanCases, GpuSelectorLeavesOthersAlone) {
  TestMachine m(2);
  for (unsigned i = 0; i < 2; ++i) {
    const auto n = std::to_string(i);
    m.actor("server" + n).actor("worker" + n, {.parent = "server" + n}).hold("worker" + n, {.gpus = {i}, .mib = 40000});
  }
  m.dies("server0").dies("server1");
  const Stages stages(m);
  EXPECT_EQ(ended(stages.plan(with_gpus({1}))), pids(m, {"worker1"}));
  EXPECT_EQ(ended(stages.plan()), pids(m, {"worker0", "worker1"}));
}

TEST(OrphanCases, Br019RayletDead) {
  TestMachine m(2);
  m.actor("raylet", {.parent = "init", .listens = true})
      .actor("actor", {.parent = "raylet"})
      .actor("engine", {.parent = "actor"});
  for (unsigned i = 0; i < 2; ++i)
    m.actor("tp" + std::to_string(i), {.parent = "engine"}).hold("tp" + std::to_string(i), {.gpus = {i}, .mib = 50000});
  m.dies("raylet").dies("actor");
  EXPECT_EQ(ended(Stages(m).plan()), pids(m, {"engine", "tp0", "tp1"}));
}

TEST(OrphanCases, NvmlMissing) {
  TestMachine m(2);
  m.actor("launcher").actor("orphan", {.parent = "launcher"}).hold("orphan", {.gpus = {0}, .mib = 30000});
  m.actor("server", {.listens = true}).hold("server", {.gpus = {1}, .mib = 20000}).dies("launcher");
  auto scan = m.snapshot();
  scan.driver.state = DriverState::absent;
  scan.charges.clear();
  for (auto& gpu : scan.gpus) gpu.memory = {};
  const Stages stages(scan);
  EXPECT_EQ(stages.holder(m.pid_of("orphan")).role, HolderRole::unresolved) << "not known to have device files only";
  EXPECT_EQ(ended(stages.plan()), pids(m, {"orphan"}));
  EXPECT_FALSE(stages.attribution.accounts[0].remainder.known());
  EXPECT_FALSE(stages.attribution.accounts[0].baseline.known());
}

TEST(OrphanCases, ProtectedImpostor) {
  TestMachine m;
  m.actor("xorg", {.parent = "init", .exe = "/usr/lib/xorg/Xorg"}).hold("xorg", {.mib = 200, .how = How::graphics});
  m.actor("launcher", {.uid = 1000});
  m.actor("impostor", {.parent = "launcher", .title = "Xorg", .exe = "/home/alice/bin/Xorg", .uid = 1000})
      .hold("impostor", {.mib = 9000});
  m.dies("launcher");
  const Stages stages(m);
  const auto plan = stages.plan();
  EXPECT_EQ(ended(plan), pids(m, {"impostor"}));
  const auto& because = step_of(plan, m.pid_of("impostor")).because;
  EXPECT_TRUE(std::any_of(because.begin(), because.end(),
                          [](const std::string& s) { return s.find("claims to be Xorg") != s.npos; }));
}

TEST(OrphanCases, Br096MpsClientRefused) {
  TestMachine m;
  m.actor("control", {.parent = "init", .exe = "/usr/bin/nvidia-cuda-mps-control"});
  m.actor("mpsd", {.parent = "control", .exe = "/usr/bin/nvidia-cuda-mps-server"}).hold("mpsd", {.mib = 27});
  m.actor("launcher").actor("client0", {.parent = "launcher"}).hold("client0", {.mib = 4000, .how = How::mps});
  m.actor("client1", {.uid = 1000}).hold("client1", {.mib = 4000, .how = How::mps}).dies("launcher");
  const auto plan = Stages(m).plan();
  EXPECT_TRUE(ended(plan).empty());
  EXPECT_EQ(refused(plan), pids(m, {"client0"}));
  EXPECT_EQ(step_of(plan, m.pid_of("client0")).rule, "mps-client");
}

TEST(OrphanCases, DryRunSamePlan) {
  TestMachine m(2);
  m.actor("api").actor("engine", {.parent = "api"});
  m.actor("tp0", {.parent = "engine"}).hold("tp0", {.gpus = {0}, .mib = 50000});
  m.actor("tp1", {.parent = "engine"}).hold("tp1", {.gpus = {1}, .mib = 50000}).dies("api");
  auto again = m.snapshot();
  again.time += 60;  // figures that pass with time must not be in a plan
  again.gpus[0].memory.used = mebibytes(50123);
  for (auto& charge : again.charges) charge.memory = mebibytes(50100);
  const auto first = Stages(m).plan();
  EXPECT_EQ(first, Stages(again).plan());
  EXPECT_EQ(first.id.size(), 16U);
}

TEST(OrphanCases, Br095RelayGoesWithItsGroup) {
  TestMachine m;
  m.actor("launcher").actor("worker", {.parent = "launcher"}).hold("worker", {.mib = 8000});
  m.actor("relay", {.parent = "launcher"}).dies("launcher");
  EXPECT_EQ(ended(Stages(m).plan()), pids(m, {"worker", "relay"}));
}

// An old driver reports the host's pids inside a container: they name nobody here, or somebody else.
TEST(OrphanCases, Br050ForeignPidsInContainer) {
  TestMachine m(2);
  m.actor("api", {.parent = "init", .group = true})
      .actor("worker", {.parent = "api"})
      .hold("worker", {.gpus = {1}, .mib = 20000});
  m.actor("stranger", {.parent = "init"}).dies("api");
  auto scan = m.snapshot();
  scan.host.whole_host = false;
  scan.visibility.all_references = false;
  scan.visibility.blind_spots = {{"foreign-pid-namespace", ""}};
  scan.charges = {{0, m.pid_of("stranger"), mebibytes(10120), {ContextKind::compute}},
                  {1, 77777, mebibytes(20000), {ContextKind::compute}}};
  const Stages stages(scan);
  EXPECT_EQ(ended(stages.plan(with_scope(Scope::all))), pids(m, {"worker"}));
  EXPECT_EQ(stages.holder(m.pid_of("worker")).role, HolderRole::unresolved);
  EXPECT_EQ(stages.attribution.charged_to_nobody[0].inheritors.size(), 0U);
}

TEST(OrphanCases, Br147HiddenIsNotDead) {
  TestMachine m(2);
  m.actor("main", {.uid = 1000})
      .actor("rank", {.parent = "main", .uid = 1000})
      .hold("rank", {.gpus = {0}, .mib = 10000});
  m.actor("bob", {.uid = 1001}).hold("bob", {.gpus = {1}, .mib = 12000}).dies("main").run_from("shell", 1000);
  auto scan = m.snapshot();
  const auto hidden = [&](pid_t pid) { return pid == m.pid_of("bob") || pid == 1; };
  std::erase_if(scan.processes, [&](const Process& process) { return hidden(process.key.pid); });
  std::erase_if(scan.references, [&](const Reference& reference) { return hidden(reference.pid); });
  scan.visibility = {{{"hidden-process", ""}, {"hidepid", ""}}, false};
  const Stages stages(scan);
  EXPECT_EQ(ended(stages.plan()), pids(m, {"rank"}));
  EXPECT_EQ(stages.attribution.charged_to_nobody[0].detail.find("dead"), std::string::npos);
}

}  // namespace
}  // namespace vacate::testing
