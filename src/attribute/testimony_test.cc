// SPDX-License-Identifier: Apache-2.0
// What services, containers and jobs prove, and mostly what they do not: each wrong step here would end somebody's
// work.
#include "attribute/testimony.h"

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::TestMachine;

const std::string kId(64, 'a');
const std::string kService = "/system.slice/llm.service";

struct Verdict {
  Standing standing = Standing::foreign;
  std::string because;  // joined
};

Verdict verdict(const Snapshot& snapshot, pid_t pid) {
  const auto attribution = attribute_holders(snapshot, Policy{});
  const auto* holder = attribution.find(pid);
  if (holder == nullptr) return {};
  Verdict found{holder->standing, {}};
  for (const auto& sentence : holder->because) found.because += sentence + "\n";
  return found;
}

bool says(const Verdict& found, const std::string& words) { return found.because.find(words) != std::string::npos; }

// ServiceUnit, with defaults for the rest.
struct Said {
  std::string name, active_state, sub_state;
  pid_t main_pid = 0;
  std::string restart;
  Reading<double> activated = {};
};

void answer(Snapshot& scan, const Said& said) {
  ServiceUnit unit;
  unit.name = said.name;
  unit.active_state = said.active_state;
  unit.sub_state = said.sub_state;
  unit.main_pid = said.main_pid;
  unit.restart = said.restart;
  unit.activated = said.activated;
  scan.services.answered = true;
  scan.services.units = {unit};
}

// br122: a worker of a unit's former main process, left in its cgroup with a session of its own, and the new one.
struct RestartedUnit {
  TestMachine machine;
  pid_t worker = 0, server = 0;

  RestartedUnit() {
    machine.actor("former", {.parent = "init"});
    machine.actor("worker", {.parent = "former", .session = true, .pipe = false}).hold("worker", {.mib = 45000});
    machine.dies("former").actor("server", {.parent = "init"}).hold("server", {.mib = 45000});
    worker = machine.pid_of("worker");
    server = machine.pid_of("server");
    for (const auto* name : {"worker", "server"}) machine.process(name).cgroup = kService;
  }
  [[nodiscard]] Snapshot with(const Said& unit) const {
    auto scan = machine.snapshot();
    answer(scan, unit);
    return scan;
  }
};

TEST(ServiceTestimony, AYoungerMainProcessMeansLeftOver) {
  const RestartedUnit unit;
  const auto scan = unit.with({"llm.service", "active", "running", unit.server, "always"});
  EXPECT_EQ(verdict(scan, unit.worker).standing, Standing::leftover);
  EXPECT_TRUE(says(verdict(scan, unit.worker), "younger than it"));
  EXPECT_EQ(verdict(scan, unit.server).standing, Standing::live);
  EXPECT_TRUE(says(verdict(scan, unit.server), "main process of its service llm.service"));
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_EQ(attribution.find(unit.worker)->supervisor, std::nullopt);
  EXPECT_EQ(attribution.find(unit.server)->supervisor, (Supervisor{"unit", "llm.service", unit.server, Restarts::yes}));
  auto starting = scan;
  starting.services.units[0].active_state = "activating";  // Type=notify that loads its model for minutes
  EXPECT_EQ(verdict(starting, unit.worker).standing, Standing::leftover);
  EXPECT_EQ(verdict(starting, unit.server).standing, Standing::live);
}

TEST(ServiceTestimony, TheMainProcessOfAServiceThatRunsIsItsOwnWhateverElseItLooksLike) {
  TestMachine machine;
  machine.actor("launcher", {.parent = "init"});
  machine.actor("daemon", {.parent = "launcher", .session = true}).hold("daemon", {.mib = 3000});
  machine.dies("launcher");
  auto& daemon = machine.process("daemon");
  daemon.cgroup = kService;
  const auto pid = machine.pid_of("daemon");
  auto scan = machine.snapshot();
  EXPECT_EQ(verdict(scan, pid).standing, Standing::leftover) << "born with a pipe to the launcher";
  answer(scan, {"llm.service", "active", "running", pid, "always"});
  EXPECT_EQ(verdict(scan, pid).standing, Standing::live);
  EXPECT_TRUE(says(verdict(scan, pid), "main process of its service"));
  for (const Reading<bool>& answered : {Reading<bool>(Unknown::timed_out), Reading<bool>(true)}) {
    scan.services.units.clear();
    scan.services.answered = answered;
    EXPECT_EQ(verdict(scan, pid).standing, Standing::unsure) << "nobody said that it is not";
    EXPECT_TRUE(says(verdict(scan, pid), "could not be asked about"));
  }
}

TEST(ServiceTestimony, ServersOfUsersThatAServiceLeftBehindStay) {
  RestartedUnit unit;
  unit.machine.process("worker").uid = uid_t{1000};
  EXPECT_EQ(verdict(unit.with({"llm.service", "active", "running", unit.server, "always"}), unit.worker).standing,
            Standing::unsure);
  unit.machine.process("worker").listens = true;
  const auto failed = unit.with({"llm.service", "failed", "failed", 0, "no"});
  EXPECT_EQ(verdict(failed, unit.worker).standing, Standing::live);
}

TEST(ServiceTestimony, AStoppedOrFailedUnitOwnsNobody) {
  const RestartedUnit unit;
  for (const auto* state : {"inactive", "failed"}) {
    const auto found = verdict(unit.with({"llm.service", state, "dead", 0, "no"}), unit.worker);
    EXPECT_EQ(found.standing, Standing::leftover) << state;
    EXPECT_TRUE(says(found, std::string("its service llm.service is ") + state));
  }
}

TEST(ServiceTestimony, WhatIsNotKnownIsNeitherGoneNorLive) {
  const RestartedUnit unit;
  const struct {
    const char* what;
    Said said;
    const char* words;
  } kTable[] = {
      {"a oneshot with RemainAfterExit", {"llm.service", "active", "exited", 0, "no"}, "proves nothing"},
      {"between two main processes", {"llm.service", "activating", "auto-restart", 0, "always"}, "proves nothing"},
      {"a main process that the scan did not see", {"llm.service", "active", "running", 4242, "no"}, "look again"},
      {"a number that is somebody else's by now", {"llm.service", "active", "running", 100, "no"}, "look again"},
      {"a unit of another name", {"other.service", "inactive", "dead", 0, "no"}, "could not be asked"},
      {"being stopped", {"llm.service", "deactivating", "stop-sigterm", unit.server, "no"}, "being stopped"},
      {"a state that nobody knows", {"llm.service", "maintenance", "", 0, "no"}, "proves nothing"},
  };
  for (const auto& row : kTable) {
    const auto found = verdict(unit.with(row.said), unit.worker);
    EXPECT_EQ(found.standing, Standing::unsure) << row.what;
    EXPECT_TRUE(says(found, row.words)) << row.what << ": " << found.because;
  }
  auto silent = unit.machine.snapshot();
  silent.services.answered = Unknown::no_permission;
  EXPECT_EQ(verdict(silent, unit.worker).standing, Standing::unsure);
  auto unread = unit.with({"llm.service", "active", "running", unit.server, "no"});
  for (auto& process : unread.processes)
    if (process.key.pid == unit.server) process.cgroup.clear();
  EXPECT_EQ(verdict(unread, unit.worker).standing, Standing::unsure) << "whose main process that is was not read";
}

// A daemon that forked itself away, or a manager whose numbers mean nothing here (another pid namespace).
TEST(ServiceTestimony, WhoMayBeTheMainProcessIsNotProvenLeftOverByOtherSigns) {
  RestartedUnit unit;
  unit.machine.process("worker").named_parent = 4711;
  unit.machine.process("worker").named_parent_alive = false;
  EXPECT_EQ(verdict(unit.with({"llm.service", "active", "running", 0, "no"}), unit.worker).standing, Standing::unsure);
  EXPECT_EQ(verdict(unit.with({"llm.service", "activating", "auto-restart", 0, "no"}), unit.worker).standing,
            Standing::leftover);
}

TEST(ServiceTestimony, OtherPlacesOfTheSameNameAreOtherUnits) {
  for (const std::string place :
       {"/user.slice/user-0.slice/user@0.service/app.slice/llm.service", "/lxc.payload.box/system.slice/llm.service",
        "/../../system.slice/llm.service", "/system.slice/slurmstepd.scope/job_1/llm.service"}) {
    RestartedUnit unit;
    for (const auto* name : {"worker", "server"}) unit.machine.process(name).cgroup = place;
    for (const auto* state : {"inactive", "active"}) {
      const auto scan = unit.with({"llm.service", state, "", std::string(state) == "active" ? unit.server : 0, "no"});
      EXPECT_EQ(verdict(scan, unit.worker).standing, Standing::unsure) << place << " " << state;
    }
  }
}

TEST(ServiceTestimony, SchedulersAndLoginsAreRestartedBesideTheirWork) {
  for (const std::string name :
       {"cron.service", "sshd.service", "sshd@3.service", "slurmd.service", "docker.service"}) {
    RestartedUnit unit;
    for (const auto* actor : {"worker", "server"}) unit.machine.process(actor).cgroup = "/system.slice/" + name;
    EXPECT_EQ(verdict(unit.with({name, "active", "running", unit.server, "no"}), unit.worker).standing,
              Standing::unsure);
    EXPECT_EQ(verdict(unit.with({name, "inactive", "dead", 0, "no"}), unit.worker).standing, Standing::unsure);
  }
  RestartedUnit unit;  // by its program, where the unit has a name of its own
  unit.machine.process("server").exe = std::string("/usr/sbin/sshd");
  EXPECT_EQ(verdict(unit.with({"llm.service", "active", "running", unit.server, "no"}), unit.worker).standing,
            Standing::unsure);
}

// Type=forking with a PID file, or MAINPID= by sd_notify: the main process may be younger than what belongs to it.
TEST(ServiceTestimony, AYoungerMainProcessOfTheSameActivationLeftNobodyOver) {
  RestartedUnit unit;
  unit.machine.process("worker").started = 1000;
  Said said{"llm.service", "active", "running", unit.server, "always"};
  said.activated = 999.5;
  EXPECT_EQ(verdict(unit.with(said), unit.worker).standing, Standing::unsure);
  said.activated = 1000.02;  // in the same moment
  EXPECT_EQ(verdict(unit.with(said), unit.worker).standing, Standing::unsure);
  said.activated = 1003.0;
  EXPECT_EQ(verdict(unit.with(said), unit.worker).standing, Standing::leftover);

  TestMachine m;
  m.actor("launcher", {.parent = "init"}).hold("launcher", {.mib = 100});
  m.actor("main", {.parent = "launcher"});
  m.process("launcher").cgroup = kService;
  m.process("main").cgroup = kService;
  auto scan = m.snapshot();
  answer(scan, {"llm.service", "active", "running", m.pid_of("main"), "no"});
  EXPECT_EQ(verdict(scan, m.pid_of("launcher")).standing, Standing::live) << "the main process is its child";
}

TEST(ServiceTestimony, AnActiveServiceKeepsWhatItsMainProcessIsOlderThan) {
  TestMachine m;
  m.actor("main", {.parent = "init"}).actor("helper", {.parent = "main"});
  m.actor("worker", {.parent = "helper", .session = true, .pipe = false}).hold("worker", {.mib = 100}).dies("helper");
  for (const auto* name : {"main", "worker"}) m.process(name).cgroup = kService;
  auto scan = m.snapshot();
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::unsure);
  answer(scan, {"llm.service", "active", "running", m.pid_of("main"), "no"});
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::live);
  EXPECT_EQ(attribute_holders(scan, Policy{}).groups[0].owner->pid, m.pid_of("main"));
  m.pipe(m.pid_of("worker"), 3, {});  // proof comes before
  scan = m.snapshot();
  answer(scan, {"llm.service", "active", "running", m.pid_of("main"), "no"});
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::leftover);
}

TEST(ServiceTestimony, WhoHasALivingOwnerIsNotAsked) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 100});
  m.process("job").cgroup = kService;
  auto scan = m.snapshot();
  answer(scan, {"llm.service", "inactive", "dead", 0, "no"});
  EXPECT_EQ(verdict(scan, m.pid_of("job")).standing, Standing::live);
}

TEST(ServiceTestimony, WhatWasMovedOnIntoALiveJobStays) {
  RestartedUnit unit;
  unit.machine.actor("child", {.parent = "worker", .pipe = false}).hold("child", {.mib = 5});
  unit.machine.process("child").cgroup = "/system.slice/slurmstepd.scope/job_7/step_0";
  auto scan = unit.with({"llm.service", "inactive", "dead", 0, "no"});
  EXPECT_EQ(verdict(scan, unit.worker).standing, Standing::leftover);
  scan.jobs = {{"7", true, "scontrol"}};
  EXPECT_EQ(verdict(scan, unit.worker).standing, Standing::unsure);
  EXPECT_EQ(verdict(scan, unit.machine.pid_of("child")).standing, Standing::unsure);
}

// Two adopted workers of a dead server in the cgroup of a container; no pipes.
TestMachine orphaned_in_container(bool own_pid_namespace) {
  TestMachine m;
  m.actor("shim", {.parent = "init", .exe = "/usr/bin/containerd-shim-runc-v2", .subreaper = true});
  m.actor("entry", {.parent = "shim", .session = true, .subreaper = own_pid_namespace});
  m.actor("server", {.parent = "entry", .group = true});
  m.actor("worker", {.parent = "server", .pipe = false}).hold("worker", {.mib = 100}).dies("server");
  for (const auto* name : {"entry", "worker"}) {
    auto& process = m.process(name);
    process.cgroup = "/system.slice/docker-" + kId + ".scope";
    if (own_pid_namespace) process.ns_pids = {process.key.pid, name == std::string("entry") ? 1 : 7};
  }
  return m;
}

TEST(ContainerTestimony, AContainerThatNoLongerExistsOwnsNobody) {
  auto m = orphaned_in_container(false);
  m.dies("entry");
  auto scan = m.snapshot();
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::unsure);
  EXPECT_TRUE(says(verdict(scan, m.pid_of("worker")), "whether its container aaaaaaaaaaaa still exists"));
  for (const auto& exists : {Reading<bool>(true), Reading<bool>(Unknown::no_permission)}) {
    scan.containers = {{kId, exists, "docker"}};
    EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::unsure);
  }
  scan.containers = {{kId, false, "docker"}};
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::leftover);
  EXPECT_TRUE(says(verdict(scan, m.pid_of("worker")), "no longer exists (docker)"));
  for (auto& process : scan.processes)
    if (!process.cgroup.empty()) process.cgroup = "/.." + process.cgroup;
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::unsure) << "another host's container";
}

TEST(ContainerTestimony, AFirstProcessThatLivesContradictsThatItIsGone) {
  const auto m = orphaned_in_container(false);
  auto scan = m.snapshot();
  scan.containers = {{kId, false, "docker"}};
  EXPECT_EQ(verdict(scan, m.pid_of("worker")).standing, Standing::unsure);
  EXPECT_TRUE(says(verdict(scan, m.pid_of("worker")), "is no ancestor of it"));
}

TEST(ContainerTestimony, TheFirstProcessKeepsWhatIsBelowIt) {
  auto m = orphaned_in_container(true);
  EXPECT_EQ(verdict(m.snapshot(), m.pid_of("worker")).standing, Standing::live);
  EXPECT_TRUE(says(verdict(m.snapshot(), m.pid_of("worker")), "an ancestor of it"));
  EXPECT_EQ(attribute_holders(m.snapshot(), Policy{}).find(m.pid_of("worker"))->supervisor,
            (Supervisor{"container", kId, m.pid_of("shim"), Restarts::unknown}));
  m.pipe(m.pid_of("worker"), 3, {});
  EXPECT_EQ(verdict(m.snapshot(), m.pid_of("worker")).standing, Standing::leftover) << "proof comes before";
}

TEST(ContainerTestimony, AMonitorIsNoPartOfTheContainer) {
  TestMachine m;
  m.actor("monitor", {.parent = "init"}).hold("monitor", {.mib = 1});
  m.process("monitor").cgroup = "/machine.slice/libpod-conmon-" + kId + ".scope";
  auto scan = m.snapshot();
  scan.containers = {{kId, false, "podman"}};
  EXPECT_EQ(verdict(scan, m.pid_of("monitor")).standing, Standing::unsure);
}

// loaders-of-one-dead-trainer inside a job: being in one live job joins nobody to those who are proven.
TEST(JobTestimony, ALiveJobKeepsTheUnprovenAndEndedOnesLeaveThemOver) {
  TestMachine m(2);
  m.actor("script", {.argv = {"bash", "run_all.sh"}});
  for (const auto* name : {"proven", "trainer"})
    m.actor(name, {.parent = "script", .pipe = false}).hold(name, {.mib = 100});
  m.pipe(m.pid_of("proven"), 3, {}).dies("script");
  for (const auto* name : {"proven", "trainer"})
    m.process(name).cgroup = "/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0";
  auto scan = m.snapshot();
  EXPECT_EQ(verdict(scan, m.pid_of("trainer")).standing, Standing::unsure);
  EXPECT_TRUE(says(verdict(scan, m.pid_of("trainer")), "whether its Slurm job 7 has ended"));
  scan.jobs = {{"7", true, "scontrol"}};
  EXPECT_EQ(verdict(scan, m.pid_of("proven")).standing, Standing::leftover);
  EXPECT_EQ(verdict(scan, m.pid_of("trainer")).standing, Standing::live);
  scan.jobs = {{"7", false, "scontrol"}};
  EXPECT_EQ(verdict(scan, m.pid_of("trainer")).standing, Standing::leftover);
  scan.jobs = {{"8", false, "scontrol"}};
  EXPECT_EQ(verdict(scan, m.pid_of("trainer")).standing, Standing::unsure);
}

TEST(Supervisors, TheNearestLauncherThenUnitContainerJobAndTerminal) {
  const struct {
    std::vector<std::string> argv;
    std::string exe;
    const char* kind;
    Restarts restarts;
  } kTable[] = {
      {{"/usr/bin/python3", "/opt/bin/torchrun", "--max-restarts=3", "t.py"},
       "/usr/bin/python3",
       "torchrun",
       Restarts::yes},
      {{"python3", "-u", "-m", "torch.distributed.run", "t.py"}, "/usr/bin/python3", "torchrun", Restarts::no},
      {{"accelerate", "launch"}, "/usr/bin/python3", "accelerate", Restarts::no},
      {{"python", "-m", "deepspeed.launcher.launch"}, "/usr/bin/python3", "deepspeed", Restarts::unknown},
      {{"x"}, "/opt/ray/core/src/ray/raylet/raylet", "ray", Restarts::unknown},
      {{"/usr/bin/python3", "/usr/bin/supervisord", "-n"}, "/usr/bin/python3", "supervisord", Restarts::unknown},
      {{"mpirun", "-np", "8"}, "/usr/bin/orterun", "mpi", Restarts::no},
      {{"vim", "torchrun"}, "/usr/bin/vim", "shell-job", Restarts::no},
  };
  for (const auto& row : kTable) {
    TestMachine m;
    m.actor("launcher", {.argv = row.argv, .exe = row.exe});
    m.actor("rank", {.parent = "launcher"}).hold("rank", {.mib = 1});
    const auto attribution = attribute_holders(m.snapshot(), Policy{});
    const auto& supervisor = attribution.find(m.pid_of("rank"))->supervisor;
    ASSERT_TRUE(supervisor) << row.kind;
    EXPECT_EQ(supervisor->kind, row.kind) << row.argv[0];
    EXPECT_EQ(supervisor->restarts, row.restarts) << row.argv[0];
    m.dies("launcher");
    EXPECT_EQ(attribute_holders(m.snapshot(), Policy{}).find(m.pid_of("rank"))->supervisor, std::nullopt)
        << "a leftover has none";
  }
}

TEST(Supervisors, AUsersUnitAndAMultiplexer) {
  TestMachine m;
  m.actor("server", {.parent = "init", .listens = true}).hold("server", {.mib = 1});
  m.process("server").cgroup = "/user.slice/user-7.slice/user@7.service/app.slice/jupyter.service";
  EXPECT_EQ(attribute_holders(m.snapshot(), Policy{}).find(m.pid_of("server"))->supervisor,
            (Supervisor{"user-unit", "jupyter.service", 0, Restarts::unknown}));
  TestMachine t;
  t.actor("tmux", {.parent = "init", .exe = "/usr/bin/tmux"});
  t.actor("bash", {.parent = "tmux", .exe = "/bin/bash", .session = true});
  t.actor("job", {.parent = "bash", .group = true}).hold("job", {.mib = 1});
  EXPECT_EQ(attribute_holders(t.snapshot(), Policy{}).find(t.pid_of("job"))->supervisor,
            (Supervisor{"tmux", "tmux", t.pid_of("tmux"), Restarts::no}));
}

}  // namespace
}  // namespace vacate
