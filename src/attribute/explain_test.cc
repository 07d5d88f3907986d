// SPDX-License-Identifier: Apache-2.0
// Accounts: configured baselines, what may explain a remainder, importers, and who stands in the way of a reset.
#include "attribute/explain.h"

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::Hold;
using testing::TestMachine;
using How = Hold::How;
using Codes = std::vector<std::string>;

Snapshot with_extra(const TestMachine& m, std::uint64_t mib) {
  auto scan = m.snapshot();
  for (auto& gpu : scan.gpus) gpu.memory.used = *gpu.memory.used + mebibytes(mib);
  return scan;
}

Codes codes_of(const Snapshot& scan, const Policy& policy = {}) {
  Codes codes;
  const auto attribution = attribute_holders(scan, policy);
  for (const auto& explanation : attribution.accounts[0].explanations) codes.push_back(explanation.code);
  return codes;
}

const Explanation& first_of(const Attribution& attribution) { return attribution.accounts[0].explanations.at(0); }

TEST(Explain, NothingWhereNothingRemains) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 100});
  EXPECT_EQ(codes_of(m.snapshot()), Codes{});
  EXPECT_EQ(codes_of(with_extra(m, 900)), Codes{}) << "taken for a baseline";
}

TEST(Explain, NothingOfWhatIsNotKnown) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 100});
  auto scan = with_extra(m, 60000);
  scan.charges[0].memory = Unknown::not_supported;
  EXPECT_EQ(codes_of(scan), Codes{"managed-memory"}) << "60,000 MiB are known to be beside what is charged";
  scan.gpus[0].memory.used = Unknown::not_supported;
  EXPECT_EQ(codes_of(scan), Codes{});
}

TEST(Explain, ManagedMemoryOfALiveHolder) {
  TestMachine m;
  m.actor("job").hold("job", {.mib = 100});
  const auto attribution = attribute_holders(with_extra(m, 60000), Policy{});
  EXPECT_EQ(first_of(attribution).code, "managed-memory");
  EXPECT_EQ(first_of(attribution).pids, std::vector<pid_t>{m.pid_of("job")});
  EXPECT_NE(first_of(attribution).text.find("may have managed memory"), std::string::npos);
  EXPECT_EQ(attribution.accounts[0].explanations.size(), 1U) << "no residue beside one that can explain it";
}

TEST(Explain, AGraphicsContextHasNoManagedMemory) {
  TestMachine m;
  m.actor("game").hold("game", {.mib = 100, .how = How::graphics});
  EXPECT_EQ(codes_of(with_extra(m, 60000)), Codes{});
}

TEST(Explain, SeveralControlFilesMayBeExportedMemory) {
  TestMachine m;
  m.actor("decode").hold("decode", {.mib = 300}).hold("decode", {.how = How::ctl});
  EXPECT_EQ(codes_of(with_extra(m, 20480)), (Codes{"managed-memory", "exported-memory"}));
}

TEST(Explain, InheritorsOfADeadOpener) {
  TestMachine m;
  m.actor("main").hold("main", {.mib = 30000});
  m.actor("loader", {.parent = "main"}).inherit("loader", "main").dies("main");
  const auto attribution = attribute_holders(m.snapshot(), Policy{});
  EXPECT_EQ(first_of(attribution).code, "dead-opener");
  EXPECT_EQ(first_of(attribution).pids, std::vector<pid_t>{m.pid_of("loader")});
}

TEST(Explain, LagOfOneThatIsExitingOrHasJustEnded) {
  TestMachine m;
  m.actor("job").actor("other");
  auto scan = with_extra(m, 30000);
  DriverCharge charge;
  charge.pid = m.pid_of("job");
  charge.memory = mebibytes(30000);
  scan.charges.push_back(charge);
  for (auto& process : scan.processes) process.exiting = process.key.pid == charge.pid;
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_EQ(first_of(attribution).code, "lag");
  EXPECT_NE(first_of(attribution).text.find("is exiting"), std::string::npos);
  scan.charges[0].pid = 4321;
  EXPECT_EQ(codes_of(scan).at(0), "lag");
  scan.host.whole_host = false;
  EXPECT_EQ(codes_of(scan).at(0), "unseen") << "it may live in another pid namespace";
  scan.charges[0].memory = Bytes{0};
  EXPECT_EQ(codes_of(scan).at(0), "driver-residue") << "a charge of nothing explains nothing";
}

TEST(Explain, ResidueIsEvidentOnlyWhereNothingElseCouldBe) {
  TestMachine m;
  m.actor("monitor", {.exe = "/usr/bin/nv-hostengine"}).hold("monitor", {.how = How::files});
  auto scan = with_extra(m, 46111);
  scan.gpus[0].persistence = true;
  scan.gpus[0].recovery_action = 1U;
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_EQ(codes_of(scan), Codes{"driver-residue"});
  const auto& text = first_of(attribution).text;
  EXPECT_NE(text.find("nothing unseen could"), std::string::npos);
  EXPECT_NE(text.find("the driver asks for a reset"), std::string::npos);
  EXPECT_NE(text.find("nvidia-smi -pm 0"), std::string::npos);
  scan.visibility.blind_spots = {{"maps-denied", "x"}};
  EXPECT_EQ(codes_of(scan), (Codes{"unseen", "driver-residue"}));
  EXPECT_NE(attribute_holders(scan, Policy{}).accounts[0].explanations[1].text.find("may be"), std::string::npos);
}

TEST(Explain, NoResetIsBroughtUpInAPartialView) {
  auto scan = with_extra(TestMachine(), 10000);
  scan.host.whole_host = false;
  scan.visibility.blind_spots = {{"foreign-pid-namespace", "x"}};
  EXPECT_EQ(codes_of(scan), Codes{"unseen"});
}

TEST(Explain, UnifiedMemoryAndFilesInFlight) {
  TestMachine m;
  m.actor("broker");
  auto scan = with_extra(m, 46111);
  scan.gpus[0].unified_memory = true;
  scan.hidden_references = {{m.pid_of("broker"), HiddenKind::in_flight, 5, 1, ""}};
  EXPECT_EQ(codes_of(scan), (Codes{"hidden-reference", "unified-memory", "driver-residue"}));
}

TEST(Explain, GhostUtilisationIsNoMemory) {
  TestMachine m;
  auto scan = m.snapshot();
  scan.gpus[0].utilization = 100U;
  const auto attribution = attribute_holders(scan, Policy{});
  ASSERT_EQ(codes_of(scan), Codes{"ghost-utilization"});
  EXPECT_NE(first_of(attribution).text.find("that is a counter"), std::string::npos);
  m.actor("job").hold("job", {.mib = 1});
  scan = m.snapshot();
  scan.gpus[0].utilization = 100U;
  EXPECT_EQ(codes_of(scan), Codes{});
  scan.gpus[0].utilization = Unknown::not_supported;
  EXPECT_EQ(codes_of(scan), Codes{});
}

TEST(Baselines, ConfiguredComesBeforeMeasured) {
  TestMachine m(2, 600);
  Policy policy;
  policy.baselines = {{"1", mebibytes(250)}, {"gpu-1", mebibytes(1)}, {"*", mebibytes(500)}};
  const auto accounts =
      attribute_holders(m.snapshot(), policy, {{0, {mebibytes(100), BaselineSource::measured}}}).accounts;
  EXPECT_EQ(*accounts[0].baseline, (Baseline{mebibytes(500), BaselineSource::configured}));
  EXPECT_EQ(*accounts[0].remainder, mebibytes(100));
  EXPECT_EQ(accounts[1].baseline->amount, mebibytes(250));
}

TEST(Baselines, NothingIsAssumedWhereSomethingUnseenCouldHoldIt) {
  TestMachine m;
  m.actor("stray").hold("stray", {.how = How::ctl});
  EXPECT_FALSE(attribute_holders(with_extra(m, 900), Policy{}).accounts[0].baseline.known());
  m.process("stray").exe = std::string("/usr/bin/nv-hostengine");
  EXPECT_TRUE(attribute_holders(with_extra(m, 900), Policy{}).accounts[0].baseline.known()) << "a known daemon";
  auto scan = with_extra(TestMachine(), 900);
  scan.hidden_references = {{100, HiddenKind::in_flight, 5, 1, ""}};
  EXPECT_FALSE(attribute_holders(scan, Policy{}).accounts[0].baseline.known());
}

HolderRole role_of_broker(const Snapshot& scan, const TestMachine& m) {
  return attribute_holders(scan, Policy{}).find(m.pid_of("broker"))->role;
}

TEST(Importers, AreSaidOnlyWhereNobodyElseCouldHoldIt) {
  TestMachine m;
  m.actor("broker").hold("broker", {.how = How::ctl});
  EXPECT_EQ(role_of_broker(with_extra(m, 3000), m), HolderRole::importer);
  EXPECT_EQ(role_of_broker(with_extra(m, 900), m), HolderRole::files) << "an idle GPU may use so much";
  auto scan = with_extra(m, 3000);
  scan.visibility.blind_spots = {{"maps-denied", "x"}};
  EXPECT_EQ(role_of_broker(scan, m), HolderRole::files);
  scan = with_extra(m, 3000);
  scan.gpus[0].unified_memory = true;
  EXPECT_EQ(role_of_broker(scan, m), HolderRole::files);
  scan = with_extra(m, 3000);
  scan.gpus[0].memory.used = Unknown::not_supported;
  EXPECT_EQ(role_of_broker(scan, m), HolderRole::files);
  m.actor("job").hold("job", {.mib = 10});
  EXPECT_EQ(role_of_broker(with_extra(m, 3000), m), HolderRole::files) << "it may be managed memory of the job";
}

TEST(Importers, ThatServeAreProtected) {
  TestMachine m;
  m.actor("broker", {.parent = "init", .listens = true}).hold("broker", {.how = How::ctl});
  const auto attribution = attribute_holders(with_extra(m, 3000), Policy{});
  EXPECT_EQ(attribution.find(m.pid_of("broker"))->protection->rule, "importer");
  EXPECT_NE(attribution.find(m.pid_of("broker"))->because.back().find("may keep what another"), std::string::npos);
  EXPECT_EQ(first_of(attribution).code, "exported-memory");
}

TEST(ResetBlockers, EachWithItsWay) {
  TestMachine m;
  const auto files = Hold{.how = How::files};
  m.actor("persist", {.parent = "init", .exe = "/usr/bin/nvidia-persistenced"}).hold("persist", files);
  m.actor("engine", {.parent = "init", .exe = "/usr/bin/nv-hostengine"}).hold("engine", files);
  m.actor("xorg", {.parent = "init", .exe = "/usr/lib/xorg/Xorg"}).hold("xorg", {.mib = 200, .how = How::graphics});
  m.actor("plugin", {.parent = "init", .exe = "/usr/bin/nvidia-device-plugin"}).hold("plugin", files);
  m.actor("smi", {.exe = "/usr/bin/nvidia-smi"}).hold("smi", files);
  m.actor("agent", {.parent = "init"}).hold("agent", files);
  m.process("agent").cgroup = "/system.slice/gpu-agent.service";
  m.actor("pod", {.parent = "init"}).hold("pod", files);
  m.process("pod").cgroup = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
  m.actor("mine").hold("mine", files);
  m.actor("job").hold("job", {.mib = 5});
  const auto attribution = attribute_holders(m.snapshot(), Policy{});
  const auto& blockers = attribution.accounts[0].reset_blockers;
  const auto way = [&](const std::string& name) {
    for (const auto& blocker : blockers)
      if (blocker.pid == m.pid_of(name)) return blocker.way;
    return std::string();
  };
  EXPECT_NE(way("persist").find("nvidia-smi -pm 0"), std::string::npos);
  EXPECT_NE(way("engine").find("systemctl stop nvidia-dcgm"), std::string::npos);
  EXPECT_NE(way("xorg").find("log out"), std::string::npos);
  EXPECT_NE(way("plugin").find("drain the node"), std::string::npos);
  EXPECT_NE(way("smi").find("ends by itself"), std::string::npos);
  EXPECT_EQ(way("agent"), "stop its service: systemctl stop gpu-agent.service");
  EXPECT_EQ(way("pod"), "stop its container, aaaaaaaaaaaa");
  EXPECT_EQ(way("mine"), "stop it: it has device files open");
  EXPECT_EQ(way("job"), "") << "it is ended, or named as a holder";
  EXPECT_EQ(blockers.size(), 8U);
  EXPECT_TRUE(std::is_sorted(blockers.begin(), blockers.end(),
                             [](const ResetBlocker& a, const ResetBlocker& b) { return a.pid < b.pid; }));
  for (const auto& blocker : blockers) EXPECT_EQ(blocker.transient, blocker.pid == m.pid_of("smi"));
}

}  // namespace
}  // namespace vacate
