// SPDX-License-Identifier: Apache-2.0
#include "os/machine_facts.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace vacate {
namespace {

TEST(MachineFacts, CgroupLayouts) {
  const std::string v1 = "31 23 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n";
  const std::string v2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(parse_cgroup_layout(v1 + v2), CgroupLayout::hybrid);
  EXPECT_EQ(parse_cgroup_layout(v1), CgroupLayout::v1);
  EXPECT_EQ(parse_cgroup_layout(v2), CgroupLayout::v2);
  for (const char* none : {"", "\n", " - cgroup", "-cgroup2-", "garbage \xff"})
    EXPECT_EQ(parse_cgroup_layout(none), CgroupLayout::none) << none;
}

TEST(MachineFacts, Lockdown) {
  EXPECT_EQ(parse_lockdown("none [integrity] confidentiality\n"), "integrity");
  EXPECT_EQ(parse_lockdown("[none] integrity confidentiality\n"), "none");
  for (const char* none : {"", "[", "]", "][", "none"}) EXPECT_EQ(parse_lockdown(none), "") << none;
}

TEST(MachineFacts, AreThoseOfThisProcess) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_EQ(facts.uid, geteuid());
  ASSERT_TRUE(facts.capabilities.known());
  ASSERT_TRUE(facts.pidfd_open.known());
  EXPECT_TRUE(*facts.pidfd_open);  // vacate needs 5.3 itself
  ASSERT_TRUE(facts.pidfd_signal.known());
  EXPECT_TRUE(*facts.pidfd_signal);
}

}  // namespace
}  // namespace vacate
