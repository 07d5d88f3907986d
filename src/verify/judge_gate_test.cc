// SPDX-License-Identifier: Apache-2.0
// What keeps a GPU from being free, on machines built by hand and attributed as a scan's are.
#include "verify/judge_gate.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using testing::Hold;
using testing::TestMachine;
using How = Hold::How;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Sighting seen(const TestMachine& machine, const std::function<void(Snapshot&)>& change = {},
              const Policy& policy = {}) {
  Sighting sighting;
  sighting.snapshot = machine.snapshot();
  if (change) change(sighting.snapshot);
  sighting.attribution = attribute_holders(sighting.snapshot, policy);
  return sighting;
}

TestMachine tenant() {
  TestMachine machine(2);
  machine.actor("tenant").hold("tenant", {{0}, 9000});
  return machine;
}

GateMemory long_quiet() {
  GateMemory memory;
  memory.watched = 60s;
  return memory;
}

WaitRequest used_below(MemoryLimit limit) {
  WaitRequest request;
  request.condition = {ConditionKind::used_below, limit};
  return request;
}

WaitRequest wants_free(MemoryLimit limit) {
  WaitRequest request;
  request.condition = {ConditionKind::free, limit};
  return request;
}

GpuGate gate(const Sighting& sighting, const WaitRequest& request = {}, const GateMemory& memory = {},
             unsigned gpu = 0) {
  return judge_gate(gpu, sighting, request, memory, Policy{});
}

void set_used(Snapshot& snapshot, std::uint64_t mib) {
  auto& memory = snapshot.gpus[0].memory;
  memory.used = mebibytes(mib);
  memory.free = *memory.total - mebibytes(mib);
}

TEST(JudgeGate, AnIdleGpuIsFreeWhateverItsCounterSays) {
  const TestMachine machine(1, 600);
  const auto sighting = seen(machine, [](Snapshot& snapshot) { snapshot.gpus[0].utilization = 100U; });
  EXPECT_EQ(gate(sighting).state, GateState::free);
}

TEST(JudgeGate, ATenantIsInTheWayOfItsGpuOnly) {
  const auto machine = tenant();
  const auto sighting = seen(machine);
  EXPECT_EQ(gate(sighting).state, GateState::in_use);
  EXPECT_THAT(gate(sighting).in_the_way, ElementsAre(machine.pid_of("tenant")));
  EXPECT_EQ(gate(sighting, {}, {}, 1).state, GateState::free);
  EXPECT_THAT(gate(sighting, {}, {}, 1).in_the_way, IsEmpty());
}

TEST(JudgeGate, DeviceFilesAloneAreNotInTheWay) {
  TestMachine machine;
  machine.actor("nvtop").hold("nvtop", {{0}, 0, How::files});
  EXPECT_EQ(gate(seen(machine)).state, GateState::free);
}

/// CUDA opens the nodes of every GPU that it could use.
TEST(JudgeGate, AContextOnAnotherGpuIsNotInTheWayWhereTheListsCanBeTrusted) {
  TestMachine machine(2);
  machine.actor("trainer").hold("trainer", {{0}, 9000}).hold("trainer", {{1}, 0, How::files});
  EXPECT_EQ(gate(seen(machine), {}, {}, 1).state, GateState::free);
  const auto doubtful = seen(machine, [](Snapshot& snapshot) {
    snapshot.visibility.blind_spots.push_back({"list-truncated", ""});
  });
  EXPECT_EQ(gate(doubtful, {}, {}, 1).state, GateState::in_use);
}

TEST(JudgeGate, AProtectedProcessAndItsMemoryAreAllowed) {
  TestMachine machine;
  machine.actor("xorg", {.parent = "init", .argv = {"/usr/lib/xorg/Xorg"}, .exe = "/usr/lib/xorg/Xorg"})
      .hold("xorg", {{0}, 207, How::graphics});
  const auto sighting = seen(machine);
  EXPECT_EQ(gate(sighting).state, GateState::free);
  EXPECT_EQ(gate(sighting).limit.value_or(Bytes{}), mebibytes(211));
  // A threshold is about memory, whoever has it.
  EXPECT_EQ(gate(sighting, used_below({mebibytes(200)})).state, GateState::in_use);
}

TEST(JudgeGate, IgnoredMeansNeitherTheProcessNorItsMemory) {
  const auto machine = tenant();
  const auto sighting = seen(machine);
  const ProcessSelector who{machine.pid_of("tenant"), {}};
  WaitRequest idle;
  idle.ignored_pids = {who};
  EXPECT_EQ(gate(sighting, idle).state, GateState::free);
  auto below = used_below({mebibytes(100)});
  EXPECT_EQ(gate(sighting, below).state, GateState::in_use);
  below.ignored_pids = {who};
  EXPECT_EQ(gate(sighting, below).state, GateState::free);
  auto free = wants_free({{}, 99});
  EXPECT_EQ(gate(sighting, free).state, GateState::in_use);
  free.ignored_pids = {who};
  EXPECT_EQ(gate(sighting, free).state, GateState::free);
  WaitRequest other_start;  // the number of one that is gone
  other_start.ignored_pids = {{who.pid, 1}};
  EXPECT_EQ(gate(sighting, other_start).state, GateState::in_use);
}

TEST(JudgeGate, IgnoredByUnit) {
  auto machine = tenant();
  machine.process("tenant").cgroup = "/system.slice/llm.service";
  WaitRequest request;
  request.ignored_units = {"llm.service"};
  EXPECT_EQ(gate(seen(machine), request).state, GateState::free);
  request.ignored_units = {"other.service"};
  EXPECT_EQ(gate(seen(machine), request).state, GateState::in_use);
}

TEST(JudgeGate, WhoeverIsNotSelectedDoesNotCount) {
  const auto machine = tenant();
  WaitRequest request;
  request.selection.users = {1000};
  EXPECT_EQ(gate(seen(machine), request).state, GateState::free);
  request.selection.users = {0};
  EXPECT_EQ(gate(seen(machine), request).state, GateState::in_use);
}

TEST(JudgeGate, SharesAndAmounts) {
  const auto sighting = seen(tenant());  // 9,004 of 97,887 MiB: 9.2 %
  struct Row {
    WaitRequest request;
    GateState state;
  };
  const std::vector<Row> rows = {
      {used_below({{}, 10}), GateState::free},
      {used_below({{}, 9}), GateState::in_use},
      {used_below({mebibytes(9004)}), GateState::in_use},  // below is below
      {used_below({mebibytes(9005)}), GateState::free},
      {wants_free({{}, 90}), GateState::free},
      {wants_free({{}, 91}), GateState::in_use},
      {wants_free({mebibytes(97887 - 9004)}), GateState::free},
      {wants_free({mebibytes(97887 - 9003)}), GateState::in_use},
  };
  for (const auto& row : rows) {
    const auto judged = gate(sighting, row.request);
    EXPECT_EQ(judged.state, row.state) << describe(row.request.condition.kind) << ' '
                                       << row.request.condition.limit.percent.value_or(0) << ' '
                                       << row.request.condition.limit.amount.mib();
    EXPECT_EQ(judged.in_the_way.empty(), row.state == GateState::free);
  }
}

TEST(JudgeGate, MoreThanTheGpuHasIsSaidToBe) {
  const auto sighting = seen(TestMachine(1, 600));
  EXPECT_EQ(gate(sighting, wants_free({mebibytes(97888)})).detail, "it has 97887 MiB in all, less than was asked for");
  EXPECT_NE(gate(sighting, wants_free({mebibytes(97887)})).detail.find("no process"), std::string::npos);
}

TEST(JudgeGate, MemoryOfNobodyIsFirstWatchedThenSaidToBeOfNobody) {
  const TestMachine machine;
  const auto sighting = seen(machine, [](Snapshot& snapshot) { set_used(snapshot, 5000); });
  EXPECT_EQ(gate(sighting).state, GateState::releasing);
  EXPECT_EQ(gate(sighting, {}, long_quiet()).state, GateState::held_by_nobody);
  auto falls = long_quiet();
  falls.since_fall = 2s;
  EXPECT_EQ(gate(sighting, {}, falls).state, GateState::releasing);
  auto released = long_quiet();
  released.since_release = 12s;
  EXPECT_EQ(gate(sighting, {}, released).state, GateState::releasing);
}

/// A release in small steps must not be taken for the GPU's own use half way down.
TEST(JudgeGate, WhileAReleaseMayBeUnderWayTheLeastBaselineCounts) {
  const TestMachine machine;
  const auto sighting = seen(machine, [](Snapshot& snapshot) { set_used(snapshot, 900); });
  EXPECT_EQ(gate(sighting, {}, long_quiet()).state, GateState::free);
  auto memory = long_quiet();
  memory.floor = mebibytes(4);
  memory.since_release = 1s;
  EXPECT_EQ(gate(sighting, {}, memory).state, GateState::releasing);
  memory.since_release = 31s;
  EXPECT_EQ(gate(sighting, {}, memory).state, GateState::free);
}

TEST(JudgeGate, PartOfThePictureProvesNothing) {
  const TestMachine machine;
  const auto sighting = seen(machine, [](Snapshot& snapshot) {
    set_used(snapshot, 600);
    snapshot.visibility.all_references = false;
    snapshot.visibility.blind_spots.push_back({"not-root", ""});
  });
  EXPECT_EQ(gate(sighting, {}, long_quiet()).state, GateState::cannot_tell);
  // Next to nothing in use is free, whoever is out of sight.
  const auto empty = seen(machine, [](Snapshot& snapshot) {
    set_used(snapshot, 4);
    snapshot.visibility.all_references = false;
    snapshot.visibility.blind_spots.push_back({"not-root", ""});
  });
  EXPECT_EQ(gate(empty).state, GateState::free);
}

TEST(JudgeGate, WhomTheDriverChargesOutOfSightIsInTheWay) {
  const TestMachine machine;
  const auto sighting = seen(machine, [](Snapshot& snapshot) {
    set_used(snapshot, 7004);
    snapshot.visibility.all_references = false;
    snapshot.visibility.blind_spots.push_back({"not-root", ""});
    snapshot.charges.push_back({0, 77, mebibytes(7000), {ContextKind::compute}});
  });
  EXPECT_EQ(gate(sighting).state, GateState::in_use);
  EXPECT_THAT(gate(sighting).charged_unseen, ElementsAre(77));
  WaitRequest request;
  request.ignored_pids = {{77, {}}};
  EXPECT_EQ(gate(sighting, request).state, GateState::free);
}

TEST(JudgeGate, WithoutAFigureOnlyHoldersAreKnown) {
  const auto blind = [](Snapshot& snapshot) {
    for (auto& gpu : snapshot.gpus) gpu.memory.used = gpu.memory.free = Unknown::timed_out;
  };
  EXPECT_EQ(gate(seen(tenant(), blind)).state, GateState::in_use);
  EXPECT_EQ(gate(seen(TestMachine(), blind)).state, GateState::cannot_tell);
  EXPECT_EQ(gate(seen(tenant(), blind), used_below({{}, 50})).state, GateState::cannot_tell);
  EXPECT_EQ(gate(seen(TestMachine()), {}, {}, 7).state, GateState::cannot_tell);
}

TEST(JudgeGate, MoreThanTheIgnoredAreChargedForCannotBeToldApart) {
  const auto machine = tenant();
  const auto sighting = seen(machine, [](Snapshot& snapshot) { set_used(snapshot, 15000); });
  WaitRequest request;
  request.ignored_pids = {{machine.pid_of("tenant"), {}}};
  EXPECT_EQ(gate(sighting, request, long_quiet()).state, GateState::cannot_tell);
}

TEST(JudgeGate, AtTheDeadlineWhatIsKnownComesBeforeWhatIsNot) {
  const auto of = [](std::vector<GateState> states) {
    std::vector<GpuGate> gates(states.size());
    for (std::size_t i = 0; i < states.size(); ++i) gates[i].state = states[i];
    return verdict_at_deadline(gates);
  };
  EXPECT_EQ(of({GateState::in_use, GateState::cannot_tell}), WaitVerdict::timeout);
  EXPECT_EQ(of({GateState::held_by_nobody, GateState::free}), WaitVerdict::timeout);
  EXPECT_EQ(of({GateState::releasing}), WaitVerdict::timeout);
  EXPECT_EQ(of({GateState::locked}), WaitVerdict::timeout);
  EXPECT_EQ(of({GateState::free, GateState::cannot_tell}), WaitVerdict::cannot_tell);
  EXPECT_EQ(of({GateState::free}), WaitVerdict::timeout);  // not for long enough
  EXPECT_EQ(of({}), WaitVerdict::cannot_tell);
}

TEST(SpareIgnored, APlanLeavesThemAlone) {
  auto machine = tenant();
  WaitRequest request;
  request.ignored_pids = {{machine.pid_of("tenant"), {}}};
  auto sighting = seen(machine);
  spare_ignored(sighting.attribution, sighting.snapshot, request);
  ASSERT_TRUE(sighting.attribution.holders.front().protection.has_value());
  EXPECT_EQ(sighting.attribution.holders.front().protection->rule, "ignored");
}

}  // namespace
}  // namespace vacate
