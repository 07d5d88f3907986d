// SPDX-License-Identifier: Apache-2.0
// Which references make a holder: those that can pin memory, and no others (facts.md 2.2, 2.6).
#include "attribute/census.h"

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::TestMachine;

/// The machine with a process "other" that has nothing open but a node of this role.
Snapshot with_node(NodeRole role) {
  TestMachine m;
  m.actor("rank").hold("rank", {.mib = 5}).actor("other");
  auto snapshot = m.snapshot();
  snapshot.nodes.push_back({role, "/dev/something", std::nullopt, 77, 0, 0});
  snapshot.references.push_back({m.pid_of("other"), EvidenceKind::descriptor, snapshot.nodes.size() - 1, 1, "fd 3"});
  return snapshot;
}

TEST(Census, WhoHasOnlyWhatPinsNoMemoryIsNoHolder) {
  for (const auto role : {NodeRole::rdma, NodeRole::caps, NodeRole::imex, NodeRole::nvswitch, NodeRole::nvlink,
                          NodeRole::uvm_tools, NodeRole::other}) {
    const auto snapshot = with_node(role);
    EXPECT_EQ(attribute_holders(snapshot, Policy{}).holders.size(), 1U) << describe(role);
    EXPECT_EQ(snapshot.references.size(), 4U) << "the hint is kept";
  }
}

TEST(Census, NeighboursOfTheDriverThatPinPagesAreHoldersOfFiles) {
  for (const auto role : {NodeRole::gdrcopy, NodeRole::storage, NodeRole::modeset, NodeRole::dma_buf}) {
    const auto attribution = attribute_holders(with_node(role), Policy{});
    ASSERT_EQ(attribution.holders.size(), 2U) << describe(role);
    EXPECT_EQ(attribution.holders[1].role, HolderRole::files) << describe(role);
    EXPECT_NE(attribution.holders[1].standing, Standing::leftover) << describe(role);
  }
}

}  // namespace
}  // namespace vacate
