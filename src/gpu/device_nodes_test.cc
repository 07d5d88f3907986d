// SPDX-License-Identifier: Apache-2.0
// Matching by number and by file. /dev/zero stands for a node: the matching does not know what a GPU is.
#include "gpu/device_nodes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>

#include "base/unique_fd.h"

namespace vacate {
namespace {

DeviceMajors majors() { return {true, 511, 510, 509}; }

TEST(ParseNodeName, KnowsTheDriversNames) {
  struct Row {
    const char* name;
    NodeRole role;
  };
  for (const auto& row : {Row{"nvidiactl", NodeRole::ctl},
                          {"nvidia0", NodeRole::gpu},
                          {"nvidia247", NodeRole::gpu},
                          {"nvidia-uvm", NodeRole::uvm},
                          {"nvidia-uvm-tools", NodeRole::uvm_tools},
                          {"nvidia-modeset", NodeRole::modeset},
                          {"nvidia-cap2", NodeRole::caps},
                          {"nvidia-nvswitchctl", NodeRole::nvswitch},
                          {"nvidia-nvswitch3", NodeRole::nvswitch}}) {
    const auto name = parse_node_name(row.name);
    ASSERT_TRUE(name) << row.name;
    EXPECT_EQ(name->role, row.role) << row.name;
  }
  EXPECT_EQ(parse_node_name("nvidia12")->minor, 12U);
  for (const char* name : {"", "nvidia", "nvidia248", "nvidia-1", "nvidia0x", "nvidiactl2", "Nvidia0", "xnvidia0",
                           "nvidia-caps", "nvidia99999999999999999999"})
    EXPECT_FALSE(parse_node_name(name)) << name;
}

TEST(ClassifyDeviceNumber, FollowsMajorsAndMinors) {
  const auto role = [](unsigned major_number, unsigned minor_number) {
    const auto name = classify_device_number(majors(), makedev(major_number, minor_number));
    return name ? std::optional(name->role) : std::nullopt;
  };
  EXPECT_EQ(role(195, 0), NodeRole::gpu);
  EXPECT_EQ(role(195, 247), NodeRole::gpu);
  EXPECT_EQ(role(195, 254), NodeRole::modeset);
  EXPECT_EQ(role(195, 255), NodeRole::ctl);
  EXPECT_EQ(role(511, 0), NodeRole::uvm);
  EXPECT_EQ(role(511, 1), NodeRole::uvm_tools);
  EXPECT_EQ(role(510, 3), NodeRole::caps);
  EXPECT_EQ(role(509, 255), NodeRole::nvswitch);
  EXPECT_FALSE(role(1, 5));
  EXPECT_FALSE(classify_device_number({true, std::nullopt, std::nullopt, std::nullopt}, makedev(0, 0)));
}

TEST(DeviceNodes, MatchACharacterDeviceByItsNumberWhereverItsNodeIs) {
  DeviceNode zero{NodeRole::gpu, "/dev/nvidia0", 0, makedev(1, 5), 0, 0};
  DeviceNodes nodes({zero}, majors());
  const auto file = read_identity(AT_FDCWD, "/dev/zero");
  ASSERT_TRUE(file);
  const auto key = nodes.match(*file);
  ASSERT_TRUE(key);
  EXPECT_EQ(nodes.index_of(*key), 0U);
  EXPECT_FALSE(nodes.match(*read_identity(AT_FDCWD, "/dev/null")));
}

TEST(DeviceNodes, MatchAnythingElseByTheFileItself) {
  char path[] = "/tmp/vacate-node-XXXXXX";
  const UniqueFd fd(mkstemp(path));
  const auto file = read_identity(fd.get());
  unlink(path);
  ASSERT_TRUE(file);
  DeviceNode node{NodeRole::ctl, "/dev/nvidiactl", std::nullopt, std::nullopt, file->device, file->inode};
  const DeviceNodes nodes({node}, majors());
  EXPECT_TRUE(nodes.match(*read_identity(fd.get())));  // a deleted node, too
  EXPECT_TRUE(nodes.match_file(file->device, file->inode));
  EXPECT_FALSE(nodes.match_file(file->device, file->inode + 1));
  auto other = *file;
  other.device += 1;
  EXPECT_FALSE(nodes.match(other));
}

TEST(DeviceNodes, KnowNumbersWithoutANodeHere) {
  DeviceNodes nodes({}, majors());
  FileIdentity file;
  file.mode = 0020666;
  file.rdev = makedev(195, 7);
  const auto key = nodes.match(file);
  ASSERT_TRUE(key);
  const auto& node = nodes.nodes()[nodes.index_of(*key)];
  EXPECT_EQ(node.path, "/dev/nvidia7");
  EXPECT_EQ(node.role, NodeRole::gpu);
  EXPECT_EQ(node.minor, 7U);
}

TEST(DeviceNodes, SortTellsWhereEachWent) {
  DeviceNodes nodes({}, majors());
  const auto ctl = nodes.index_of({true, makedev(195, 255), 0});
  const auto second = nodes.index_of({true, makedev(195, 10), 0});
  const auto first = nodes.index_of({true, makedev(195, 2), 0});
  const auto moved = nodes.sort();
  EXPECT_EQ(nodes.nodes()[moved[first]].path, "/dev/nvidia2");
  EXPECT_EQ(moved[first], 0U);
  EXPECT_EQ(moved[second], 1U);
  EXPECT_EQ(nodes.nodes()[moved[ctl]].path, "/dev/nvidiactl");
  EXPECT_EQ(nodes.index_of({true, makedev(195, 10), 0}), 1U);
}

TEST(DeviceNodes, TwoNamesOfOneDeviceAreOneNode) {
  const DeviceNode a{NodeRole::gpu, "/dev/nvidia0", 0, makedev(195, 0), 5, 1};
  const DeviceNode b{NodeRole::gpu, "/dev/nvidia1", 1, makedev(195, 0), 5, 2};
  const DeviceNodes nodes({a, b}, majors());
  EXPECT_EQ(nodes.nodes().size(), 1U);
  EXPECT_TRUE(nodes.match_file(5, 2));
}

}  // namespace
}  // namespace vacate
