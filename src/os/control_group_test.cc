// SPDX-License-Identifier: Apache-2.0
#include "os/control_group.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

TEST(ControlGroups, OwnPlaceIsThatOfTheUnifiedHierarchy) {
  EXPECT_EQ(parse_own_cgroup2("9:name=systemd:/a\n0::/user.slice/session-3.scope\n"), "/user.slice/session-3.scope");
  EXPECT_EQ(parse_own_cgroup2("0::/\n"), "/");
  EXPECT_EQ(parse_own_cgroup2("1:cpu:/a\n"), "");
  EXPECT_EQ(parse_own_cgroup2(""), "");
}

TEST(ControlGroups, APlaceOutsideOfTheNamespaceIsNone) {
  EXPECT_EQ(parse_own_cgroup2("0::/../../other\n"), "");
  EXPECT_EQ(parse_own_cgroup2("0::/..\n"), "");
  EXPECT_EQ(parse_own_cgroup2("0::/a (deleted)\n"), "");
  EXPECT_EQ(parse_own_cgroup2("0::/a..b\n"), "/a..b");
}

}  // namespace
}  // namespace vacate
