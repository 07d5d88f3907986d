// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

namespace vacate {
namespace {

constexpr std::string_view kRoot = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

TEST(Mounts, ReadsWhatTheKernelWrites) {
  const auto mounts = parse_mounts(
      "31 20 0:27 / /dev/shm rw,nosuid shared:4 - tmpfs tmpfs rw,inode64\n"
      "40 20 0:27 /psm\\0400 /mnt/a\\040b rw master:1 propagate_from:2 - tmpfs x rw");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0], (MountLine{31, 20, makedev(0, 27), "/", "/dev/shm", "tmpfs"}));
  EXPECT_EQ(mounts[1].root, "/psm 0");
  EXPECT_EQ(mounts[1].point, "/mnt/a b");
}

TEST(Mounts, LeavesOutWhatIsNoLineOfIt) {
  for (const std::string_view text :
       {"", "\n\n", " - ", "1 2 3 4 5 - tmpfs", "1 2 0:27 / point rw - tmpfs", "x 2 0:27 / /p rw - tmpfs",
        "1 2 0:99999999 / /p rw - tmpfs", "1 2 0: / /p rw - tmpfs", "1 2 0:27 / /p rw tmpfs", "\xff\xfe - \x00"})
    EXPECT_TRUE(parse_mounts(text).empty()) << text;
}

TEST(Mounts, WhatLiesUnderAnotherMountIsNotOnTop) {
  const auto is_seen = [](std::string_view more) {
    const auto mounts =
        parse_mounts(std::string(kRoot) + "30 20 0:40 / /mnt/huge rw - hugetlbfs h rw\n" + std::string(more));
    return is_on_top(mounts.at(1), mounts);
  };
  EXPECT_TRUE(is_seen(""));
  EXPECT_TRUE(is_seen("31 20 0:41 / /mnt/huge2 rw - tmpfs x rw\n"));
  EXPECT_FALSE(is_seen("31 30 0:41 / /mnt/huge rw - tmpfs x rw\n"));
  EXPECT_FALSE(is_seen("31 20 0:41 / /mnt rw - fuse x rw\n"));
  EXPECT_TRUE(is_seen("31 30 0:41 / /mnt/huge/below rw - tmpfs x rw\n"));
}

TEST(Mounts, WhatIsMountedOnAnAutomountIsOnTop) {
  const auto mounts = parse_mounts(std::string(kRoot) +
                                   "30 20 0:40 / /dev/hugepages rw - autofs s rw\n"
                                   "31 30 0:41 / /dev/hugepages rw - hugetlbfs h rw\n");
  EXPECT_FALSE(is_on_top(mounts.at(1), mounts));
  EXPECT_TRUE(is_on_top(mounts.at(2), mounts));
}

/// A table whose parents go round in a circle ends.
TEST(Mounts, ACircleOfParentsEnds) {
  const auto mounts = parse_mounts("1 2 0:1 / /a rw - tmpfs x rw\n2 1 0:2 / /a rw - tmpfs x rw\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_TRUE(is_on_top(mounts[0], mounts));
}

}  // namespace
}  // namespace vacate
