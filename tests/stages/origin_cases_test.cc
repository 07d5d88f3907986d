// SPDX-License-Identifier: Apache-2.0
// Stories of services, containers and jobs, and of what a shell leaves behind, from the machine to the plan: who goes
// with `free`, and above all who does not.
#include "stages.h"

namespace vacate::testing {
namespace {

std::set<pid_t> ended_by(const Snapshot& scan, const FreeRequest& request = {}) {
  return ended(Stages(scan).plan(request));
}

// Each trainer has a pipe to itself, as asyncio makes one, and a queue to its own loader.
TEST(OriginCases, TrainerAndLoadersOfAFinishedScript) {
  TestMachine m(2);
  m.actor("script", {.argv = {"bash", "run_all.sh"}});
  for (unsigned i = 0; i < 2; ++i) {
    const auto n = std::to_string(i);
    m.actor("trainer" + n, {.parent = "script", .pipe = false}).hold("trainer" + n, {.gpus = {i}, .mib = 30000});
    m.actor("loader" + n, {.parent = "trainer" + n}).inherit("loader" + n, "trainer" + n);
    const auto trainer = m.pid_of("trainer" + n);
    m.pipe(trainer, 5, {trainer}).pipe(trainer, 6, {m.pid_of("loader" + n)});
  }
  m.dies("script");
  EXPECT_EQ(ended_by(m.snapshot()), std::set<pid_t>{});
  // One is ended by the OOM killer: its loader goes, and neither the other trainer nor its loader does.
  m.dies("trainer0");
  EXPECT_EQ(ended_by(m.snapshot()), pids(m, {"loader0"}));
  for (const auto* name : {"trainer1", "loader1"})
    EXPECT_EQ(Stages(m).holder(m.pid_of(name)).standing, Standing::unsure) << name;
}

// `python train.py <(ls) &`, and then the shell ends: ls is gone, and its pipe is on descriptor 63 of the trainer.
TEST(OriginCases, APipeThatAShellHandedDown) {
  TestMachine m;
  m.actor("script", {.argv = {"bash"}, .exe = "/bin/bash"});
  m.actor("trainer", {.parent = "script", .pipe = false}).hold("trainer", {.mib = 30000});
  m.pipe(m.pid_of("trainer"), 63, {}, -0.002, false).dies("script");
  EXPECT_EQ(Stages(m).holder(m.pid_of("trainer")).standing, Standing::unsure);
  EXPECT_TRUE(Stages(m).plan().empty());
}

TEST(OriginCases, OneshotUnitThatRemainsActive) {
  TestMachine m;
  m.actor("start", {.parent = "init"});
  m.actor("daemon", {.parent = "start", .session = true, .pipe = false}).hold("daemon", {.mib = 8000}).dies("start");
  m.process("daemon").cgroup = "/system.slice/warm-up.service";
  auto scan = m.snapshot();
  scan.services.answered = true;
  ServiceUnit unit;
  unit.name = "warm-up.service";
  unit.active_state = "active";
  unit.sub_state = "exited";
  scan.services.units = {unit};
  const Stages stages(scan);
  EXPECT_EQ(stages.holder(m.pid_of("daemon")).standing, Standing::unsure);
  EXPECT_TRUE(stages.plan().empty());
  scan.services.units[0].active_state = "inactive";
  EXPECT_EQ(ended_by(scan), pids(m, {"daemon"}));
}

TEST(OriginCases, SelectorsOnlyNarrow) {
  TestMachine m(2);
  for (unsigned i = 0; i < 2; ++i) {
    const auto n = std::to_string(i);
    m.actor("main" + n).actor("orphan" + n, {.parent = "main" + n}).hold("orphan" + n, {.gpus = {i}, .mib = 10});
    m.actor("helper" + n, {.parent = "orphan" + n});
  }
  m.actor("server", {.listens = true}).hold("server", {.mib = 10}).dies("main0").dies("main1");
  m.process("orphan0").cgroup = m.process("helper0").cgroup = "/system.slice/a.service";
  m.process("orphan1").cgroup = m.process("helper1").cgroup = "/system.slice/b.service";
  m.process("server").cgroup = "/system.slice/a.service";
  FreeRequest request;
  request.selection.units = {"a.service"};
  EXPECT_EQ(ended_by(m.snapshot(), request), pids(m, {"orphan0", "helper0"}));
  request.scope = Scope::all;
  EXPECT_EQ(ended_by(m.snapshot(), request), pids(m, {"orphan0", "helper0", "server"}));
  request.selection.cgroups = {"/system.slice/b.service"};
  EXPECT_TRUE(ended_by(m.snapshot(), request).empty());
  request.selection = {};
  request.selection.jobs = {"1"};
  EXPECT_TRUE(ended_by(m.snapshot(), request).empty());
}

// The driver and --pid of a container: a number there is never taken for one here.
TEST(OriginCases, ANumberOfAnotherNamespaceIsNamedAndNotResolved) {
  TestMachine m;
  m.actor("worker").hold("worker", {.mib = 10});
  m.process("worker").ns_pids = {m.pid_of("worker"), 12};
  const Stages stages(m);
  const auto planned = plan_free(stages.snapshot, stages.attribution, naming(12));
  ASSERT_FALSE(planned);
  EXPECT_NE(planned.error().message.find(std::to_string(m.pid_of("worker")) + " is 12 in its own pid namespace"),
            std::string::npos)
      << planned.error().message;
}

}  // namespace
}  // namespace vacate::testing
