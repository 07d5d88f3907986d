// SPDX-License-Identifier: Apache-2.0
// Groups, roles and accounts: what standing_test.cc does not ask.
#include "attribute/attribute.h"

#include <gtest/gtest.h>

#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::Hold;
using testing::TestMachine;
using How = Hold::How;

Attribution attribute(const TestMachine& m) { return attribute_holders(m.snapshot(), Policy{}); }

TEST(Grouping, JobsOfOneShellAreNoGroup) {
  TestMachine m;
  m.actor("one").hold("one", {.mib = 1}).actor("two").hold("two", {.mib = 1});
  const auto attribution = attribute(m);
  EXPECT_EQ(attribution.groups.size(), 2U);
  EXPECT_EQ(attribution.groups[0].owner->pid, m.pid_of("shell"));
  EXPECT_EQ(attribution.groups[0].owner_title, "-bash");
  EXPECT_TRUE(attribution.groups[0].relatives.empty());
}

TEST(Grouping, ASessionLeaderJoinsItsLivingGroups) {
  TestMachine m;
  m.actor("leader", {.parent = "init", .listens = true}).actor("middle", {.parent = "leader", .group = true});
  m.actor("worker", {.parent = "middle", .detached = true}).hold("worker", {.mib = 1});
  EXPECT_EQ(attribute(m).groups[0].relatives.size(), 2U);
  EXPECT_EQ(attribute(m).find(m.pid_of("worker"))->standing, Standing::live);
}

TEST(Grouping, WhatCouldBeAShellJoinsNothing) {
  TestMachine m;
  m.actor("unknown").actor("job", {.parent = "unknown", .group = true}).hold("job", {.mib = 1});
  EXPECT_EQ(attribute(m).groups[0].relatives.size(), 1U);
  m.process("unknown").exe = Unknown::no_permission;
  EXPECT_TRUE(attribute(m).groups[0].relatives.empty());
  EXPECT_EQ(attribute(m).find(m.pid_of("job"))->standing, Standing::live) << "it still counts as a parent";
}

TEST(Grouping, TrackerIsMarked) {
  TestMachine m;
  m.actor("main").hold("main", {.mib = 1});
  m.actor("tracker",
          {.parent = "main", .argv = {"python3", "-c", "from multiprocessing.resource_tracker import main;main(9)"}});
  m.actor("reader", {.parent = "main", .argv = {"less", "multiprocessing.resource_tracker import main"}});
  const auto relatives = attribute(m).groups[0].relatives;
  ASSERT_EQ(relatives.size(), 2U);
  EXPECT_TRUE(relatives[0].resource_tracker);
  EXPECT_FALSE(relatives[1].resource_tracker);
}

TEST(Roles, EachKind) {
  TestMachine m(2);
  m.actor("context").hold("context", {.mib = 5}).actor("child", {.parent = "context"}).inherit("child", "context");
  m.actor("monitor").hold("monitor", {.gpus = {0, 1}, .how = How::files});
  m.actor("mapper");
  auto scan = m.snapshot();
  scan.references.push_back({m.pid_of("mapper"), EvidenceKind::mapping, m.gpu_node(1), 1, ""});
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_EQ(attribution.find(m.pid_of("context"))->role, HolderRole::context);
  EXPECT_EQ(attribution.find(m.pid_of("child"))->role, HolderRole::inheritor);
  EXPECT_EQ(attribution.find(m.pid_of("monitor"))->role, HolderRole::files);
  EXPECT_EQ(attribution.find(m.pid_of("mapper"))->role, HolderRole::mapped);
  scan.gpus[1].state = GpuState::lost;
  EXPECT_EQ(attribute_holders(scan, Policy{}).find(m.pid_of("monitor"))->role, HolderRole::unresolved);
}

TEST(Roles, NodesThatPinNothingMakeNoHolder) {
  TestMachine m;
  m.actor("tool");
  auto scan = m.snapshot();
  scan.nodes.push_back({NodeRole::uvm_tools, "/dev/nvidia-uvm-tools", {}, 3, 0, 0});
  scan.references.push_back({m.pid_of("tool"), EvidenceKind::descriptor, scan.nodes.size() - 1, 1, ""});
  EXPECT_TRUE(attribute_holders(scan, Policy{}).holders.empty());
}

TEST(Roles, VacateItselfIsNoHolder) {
  TestMachine m;
  auto scan = m.snapshot();
  scan.references.push_back({scan.caller.self.pid, EvidenceKind::descriptor, TestMachine::kCtl, 1, ""});
  EXPECT_TRUE(attribute_holders(scan, Policy{}).holders.empty());
}

TEST(Accounts, UnknownIsNeverZero) {
  TestMachine m;
  m.actor("one").hold("one", {.mib = 100}).actor("two").hold("two", {.mib = 200});
  auto scan = m.snapshot();
  scan.charges[0].memory = Unknown::not_supported;
  const auto attribution = attribute_holders(scan, Policy{});
  EXPECT_FALSE(attribution.find(m.pid_of("one"))->gpus[0].memory.known());
  EXPECT_TRUE(attribution.find(m.pid_of("one"))->gpus[0].has_context);
  EXPECT_EQ(attribution.accounts[0].attributed, mebibytes(200));
  EXPECT_FALSE(attribution.accounts[0].baseline.known());
  EXPECT_FALSE(attribution.accounts[0].remainder.known());
}

TEST(Accounts, KnownBaselineIsPreferred) {
  TestMachine m(1, 600);
  const auto accounts =
      attribute_holders(m.snapshot(), Policy{}, {{0, {mebibytes(500), BaselineSource::configured}}}).accounts;
  EXPECT_EQ(accounts[0].baseline->source, BaselineSource::configured);
  EXPECT_EQ(*accounts[0].remainder, mebibytes(100));
}

TEST(Accounts, NothingIsAssumedInTheDark) {
  TestMachine m(1, 600);
  auto scan = m.snapshot();
  scan.visibility.all_references = false;
  EXPECT_FALSE(attribute_holders(scan, Policy{}).accounts[0].baseline.known());
  scan = m.snapshot();
  scan.gpus[0].memory.used = Unknown::not_supported;
  EXPECT_EQ(attribute_holders(scan, Policy{}).accounts[0].baseline.reason(), Unknown::not_supported);
}

}  // namespace
}  // namespace vacate
