// SPDX-License-Identifier: Apache-2.0
// What proves that an owner is dead and, mostly, what does not. tests/stages has the stories of the cases.
#include "attribute/attribute.h"

#include <gtest/gtest.h>

#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::Hold;
using testing::TestMachine;
using How = Hold::How;

Standing standing_in(const Snapshot& snapshot, pid_t pid) {
  const auto attribution = attribute_holders(snapshot, Policy{});
  const auto* holder = attribution.find(pid);
  return holder != nullptr ? holder->standing : Standing::foreign;
}
Standing standing(const TestMachine& m, const std::string& name) { return standing_in(m.snapshot(), m.pid_of(name)); }

// A worker whose launcher ended; no pipe unless a test adds one.
TestMachine orphaned_worker() {
  TestMachine m;
  m.actor("launcher")
      .actor("worker", {.parent = "launcher", .pipe = false})
      .hold("worker", {.mib = 1000})
      .dies("launcher");
  return m;
}

TEST(PipeProof, NobodyAtTheOtherEnd) {
  auto m = orphaned_worker();
  EXPECT_EQ(standing(m, "worker"), Standing::unsure);
  EXPECT_EQ(standing(m.pipe(m.pid_of("worker"), 3, {}), "worker"), Standing::leftover);
}

TEST(PipeProof, WhatIsNone) {
  struct Row {
    const char* what;
    int fd;
    std::vector<pid_t> other_end;
    double created_after_start;
    bool close_on_exec;
  };
  const auto worker = orphaned_worker().pid_of("worker");
  const Row rows[] = {
      {"a standard stream, as of a shell's pipeline", 2, {}, -0.001, true},
      {"a pipe handed down by a shell is not close-on-exec", 5, {}, -0.001, false},
      {"a pipe that it made itself as soon as it ran", 5, {}, 0.020, true},
      {"a pipe that it made itself later", 5, {}, 0.060, true},
      {"a pipe of somebody before it, inherited on the way", 5, {}, -60, true},
      {"a pipe to itself", 5, {worker}, -0.001, true},
      {"a pipe to a live stranger", 5, {100}, -0.001, true},
      {"the other end is held by somebody who was not seen", 5, {4242}, -0.001, true},
  };
  for (const auto& row : rows) {
    auto m = orphaned_worker();
    m.actor("stranger").pipe(worker, row.fd, row.other_end, row.created_after_start, row.close_on_exec);
    auto scan = m.snapshot();
    for (auto& process : scan.processes) {
      if (process.key.pid == worker) process.pipes[0].other_end = row.other_end;
    }
    EXPECT_EQ(standing_in(scan, worker), Standing::unsure) << row.what;
  }
}

Snapshot with_pipe(Snapshot scan, pid_t pid, const PipeEnd& pipe) {
  for (auto& process : scan.processes) {
    if (process.key.pid == pid) process.pipes = {pipe};
  }
  return scan;
}

TEST(PipeProof, UnknownFactsProveNothing) {
  const auto m = orphaned_worker();
  const auto worker = m.pid_of("worker");
  const PipeEnd denied = {3, 0, false, true, -0.001, Unknown::no_permission};
  EXPECT_EQ(standing_in(with_pipe(m.snapshot(), worker, denied), worker), Standing::unsure);
  const PipeEnd stepped_clock = {3, 0, false, true, Unknown::implausible, std::vector<pid_t>{}};
  EXPECT_EQ(standing_in(with_pipe(m.snapshot(), worker, stepped_clock), worker), Standing::unsure);
}

// Not root, or in a container: the kernel still counts the ends of a pipe, but who holds them is not known for certain.
TEST(PipeProof, InAPartialViewOnlyNobodyCounts) {
  TestMachine m(2);
  m.actor("main").actor("first", {.parent = "main", .pipe = false}).hold("first", {.gpus = {0}, .mib = 1});
  m.actor("last", {.parent = "main"}).hold("last", {.gpus = {1}, .mib = 1});
  m.pipe(m.pid_of("first"), 4, {m.pid_of("main"), m.pid_of("last")}).dies("main");
  auto scan = m.snapshot();
  EXPECT_EQ(standing_in(scan, m.pid_of("first")), Standing::leftover);
  scan.visibility.all_references = false;
  EXPECT_EQ(standing_in(scan, m.pid_of("last")), Standing::leftover);
  EXPECT_EQ(standing_in(scan, m.pid_of("first")), Standing::unsure);
}

TEST(PipeProof, QueueInsideTheGroupIsNone) {
  auto m = orphaned_worker();
  m.actor("loader", {.parent = "worker", .pipe = true}).inherit("loader", "worker");
  m.pipe(m.pid_of("worker"), 7, {m.pid_of("loader")}, -0.001);
  EXPECT_EQ(standing(m, "worker"), Standing::unsure);
  EXPECT_EQ(standing(m, "loader"), Standing::unsure);
}

// facts.md 3.7: later siblings inherit the parent's ends of earlier ones, so only the last child's pipe is broken at
// first.
TEST(PipeProof, SpreadsFromTheLastForkedChildToTheFirst) {
  TestMachine m(3);
  m.actor("main");
  for (unsigned i = 0; i < 3; ++i) {
    const auto name = "child" + std::to_string(i);
    m.actor(name, {.parent = "main", .pipe = false}).hold(name, {.gpus = {i}, .mib = 1000});
  }
  const auto a = m.pid_of("child0"), b = m.pid_of("child1"), c = m.pid_of("child2"), main = m.pid_of("main");
  m.pipe(a, 4, {main, b, c}).pipe(b, 5, {main, c}).pipe(c, 6, {main});
  EXPECT_EQ(standing(m, "child0"), Standing::live);
  m.dies("main");
  for (const auto* name : {"child0", "child1", "child2"}) EXPECT_EQ(standing(m, name), Standing::leftover) << name;
  m.actor("debugger").pipe(c, 9, {});
  auto scan = m.snapshot();
  for (auto& process : scan.processes) {
    if (process.key.pid == c) process.pipes = {{6, 0, false, true, -0.001, std::vector<pid_t>{m.pid_of("debugger")}}};
  }
  EXPECT_EQ(standing_in(scan, a), Standing::unsure) << "the chain hangs on its last link";
}

// A group is judged as a whole for `live`: who is owned by somebody saves those who are adopted.
TEST(PipeProof, DoesNotOutweighALiveMember) {
  auto m = orphaned_worker();
  m.pipe(m.pid_of("worker"), 3, {});
  m.actor("owned").hold("owned", {.mib = 10}).inherit("owned", "worker");
  EXPECT_EQ(standing(m, "worker"), Standing::live);
}

TEST(NamedParent, CountsOnlyWhereAdoptedAndDead) {
  auto m = orphaned_worker();
  m.process("worker").named_parent = 77;
  EXPECT_EQ(standing(m, "worker"), Standing::unsure) << "alive";
  m.process("worker").named_parent_alive = false;
  EXPECT_EQ(standing(m, "worker"), Standing::leftover);
  TestMachine owned;
  owned.actor("worker", {.named_parent = 77}).hold("worker", {.mib = 1000});
  owned.process("worker").named_parent_alive = false;
  EXPECT_EQ(standing(owned, "worker"), Standing::live);
}

// A trainer started by a launcher; its loader inherited the client and was born without a pipe.
TestMachine dead_trainer(bool trainer_leads_group) {
  TestMachine m;
  m.actor("launcher")
      .actor("trainer", {.parent = "launcher", .group = trainer_leads_group})
      .hold("trainer", {.mib = 9000});
  m.actor("loader", {.parent = "trainer", .pipe = false}).inherit("loader", "trainer");
  m.dies("trainer").dies("launcher");
  return m;
}

TEST(DeadOpener, ProvesWhereItLedTheGroup) { EXPECT_EQ(standing(dead_trainer(true), "loader"), Standing::leftover); }

TEST(DeadOpener, IsNotConcludedFromWhoIsLeft) {
  // A stale row of the driver's list is nobody's, and a trainer that is starting has no row yet.
  EXPECT_EQ(standing(dead_trainer(false), "loader"), Standing::unsure);
}

TEST(DeadOpener, ProvesAllWhoShareOneClientAndNobodyElse) {
  TestMachine m;
  m.actor("trainer").hold("trainer", {.mib = 9000});
  for (const auto* name : {"loader0", "loader1"})
    m.actor(name, {.parent = "trainer", .pipe = false}).inherit(name, "trainer");
  auto beside = m;
  m.dies("trainer");
  EXPECT_EQ(standing(m, "loader0"), Standing::leftover);
  EXPECT_EQ(standing(m, "loader1"), Standing::leftover);
  // Another one of the group that has everything open and no charge could be the keeper as well: no longer proven.
  beside.actor("starting", {.parent = "trainer", .pipe = false}).hold("starting", {.how = How::uvm}).dies("trainer");
  EXPECT_EQ(standing(beside, "loader0"), Standing::unsure);
  EXPECT_EQ(standing(beside, "starting"), Standing::unsure);
}

TEST(PipeProof, TheEndToWriteToIsThatOfAHelper) {
  const auto m = orphaned_worker();
  const auto worker = m.pid_of("worker");
  const PipeEnd to_a_dead_helper = {3, 0, false, true, -0.001, std::vector<pid_t>{}, false};
  EXPECT_EQ(standing_in(with_pipe(m.snapshot(), worker, to_a_dead_helper), worker), Standing::unsure);
}

TEST(PipeProof, AServerSetUpToStayOutlivedItsLauncher) {
  TestMachine m;
  m.actor("launcher").actor("server", {.parent = "launcher", .group = true, .pipe = true, .listens = true});
  m.hold("server", {.mib = 9000}).dies("launcher");
  EXPECT_EQ(standing(m, "server"), Standing::live);
}

TEST(DeadOpener, ProvesNothingInTheDark) {
  const auto m = dead_trainer(true);
  auto scan = m.snapshot();
  scan.visibility.all_references = false;
  EXPECT_EQ(standing_in(scan, m.pid_of("loader")), Standing::unsure);
  scan = m.snapshot();
  scan.host.whole_host = false;  // the number may be another namespace's
  EXPECT_EQ(standing_in(scan, m.pid_of("loader")), Standing::unsure);
  auto lone = dead_trainer(false).snapshot();
  lone.visibility.blind_spots = {{"in-flight", "a descriptor is queued on a socket"}};
  EXPECT_EQ(standing_in(lone, m.pid_of("loader")), Standing::unsure);
}

// The wrong kill to be afraid of: a monitor that has every GPU open, adopted, beside the charge of a dead process.
TEST(DeadOpener, LeavesMonitorsAlone) {
  TestMachine m(2);
  m.actor("trainer").hold("trainer", {.mib = 9000}).actor("loader", {.parent = "trainer"}).inherit("loader", "trainer");
  m.actor("watch", {.parent = "init"}).hold("watch", {.gpus = {0, 1}, .how = How::files});
  m.actor("terminal")
      .actor("nvtop", {.parent = "terminal", .pipe = false})
      .hold("nvtop", {.gpus = {0, 1}, .how = How::files});
  m.dies("terminal").dies("trainer");
  const auto attribution = attribute_holders(m.snapshot(), Policy{});
  EXPECT_EQ(attribution.find(m.pid_of("loader"))->standing, Standing::leftover);
  for (const auto* name : {"watch", "nvtop"})
    EXPECT_EQ(attribution.find(m.pid_of(name))->standing, Standing::unsure) << name;
  EXPECT_EQ(attribution.find(m.pid_of("watch"))->role, HolderRole::files);
  auto alone = m.snapshot();  // the trainer's loader ended a moment ago, the driver's list is of before
  std::erase_if(alone.references, [&](const Reference& reference) { return reference.pid == m.pid_of("loader"); });
  EXPECT_EQ(standing_in(alone, m.pid_of("watch")), Standing::unsure);
  EXPECT_EQ(standing_in(alone, m.pid_of("nvtop")), Standing::unsure);
}

TEST(DeadOpener, AnExitingOpenerIsNoGhost) {
  auto m = dead_trainer(true);
  auto scan = m.snapshot();
  Process dying = *scan.find(m.pid_of("loader"));
  dying.key.pid = scan.charges[0].pid;
  dying.exiting = true;
  scan.processes.push_back(dying);
  std::sort(scan.processes.begin(), scan.processes.end(),
            [](const Process& a, const Process& b) { return a.key.pid < b.key.pid; });
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_TRUE(attribution.charged_to_nobody[0].inheritors.empty());
  EXPECT_NE(attribution.charged_to_nobody[0].detail.find("exiting"), std::string::npos);
}

TEST(FilesOnly, AreNoLeftoversByThemselves) {
  TestMachine m;
  m.actor("launcher").actor("monitor", {.parent = "launcher"}).hold("monitor", {.how = How::files}).dies("launcher");
  EXPECT_EQ(standing(m, "monitor"), Standing::unsure);
  TestMachine with_worker;
  with_worker.actor("launcher").actor("engine", {.parent = "launcher"}).hold("engine", {.how = How::files});
  with_worker.actor("worker", {.parent = "engine"}).hold("worker", {.mib = 10}).dies("launcher");
  EXPECT_EQ(standing(with_worker, "engine"), Standing::leftover);
}

TEST(Server, ListeningSavesOnlyWhoLeads) {
  TestMachine m;
  m.actor("starter")
      .actor("server", {.parent = "starter", .session = true, .pipe = false, .listens = true})
      .hold("server", {.mib = 10});
  EXPECT_EQ(standing(m.dies("starter"), "server"), Standing::live);
  auto rank = orphaned_worker();
  rank.process("worker").listens = true;
  EXPECT_EQ(standing(rank, "worker"), Standing::unsure);
}

TEST(Creator, HiddenParentProvesNothingEitherWay) {
  auto m = orphaned_worker();
  auto scan = m.pipe(m.pid_of("worker"), 3, {}).snapshot();
  for (auto& process : scan.processes) {
    if (process.key.pid == m.pid_of("worker")) process.ppid = 555;
  }
  EXPECT_EQ(standing_in(scan, m.pid_of("worker")), Standing::unsure);
}

TEST(Creator, PidOneIsKnownToHaveAdoptedEvenWhereItIsHidden) {
  auto m = orphaned_worker();
  auto scan = m.pipe(m.pid_of("worker"), 3, {}).snapshot();
  std::erase_if(scan.processes, [](const Process& process) { return process.key.pid == 1; });
  EXPECT_EQ(standing_in(scan, m.pid_of("worker")), Standing::leftover);
}

TEST(Foreign, ReferencesWithoutAProcess) {
  TestMachine m;
  auto scan = m.actor("worker").hold("worker", {.mib = 10}).snapshot();
  std::erase_if(scan.processes, [&](const Process& process) { return process.key.pid == m.pid_of("worker"); });
  EXPECT_EQ(standing_in(scan, m.pid_of("worker")), Standing::foreign);
}

TEST(Ring, ParentsThatFormARingEnd) {
  TestMachine m;
  m.actor("a").actor("b", {.parent = "a"}).hold("b", {.mib = 10});
  m.process("a").ppid = m.pid_of("b");
  EXPECT_NE(attribute_holders(m.snapshot(), Policy{}).find(m.pid_of("b")), nullptr);
}

}  // namespace
}  // namespace vacate
