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

DeviceMajors majors() {
  return {true,
          {{511, NodeRole::uvm},
           {510, NodeRole::caps},
           {509, NodeRole::nvswitch},
           {508, NodeRole::imex},
           {507, NodeRole::nvlink},
           {506, NodeRole::gdrcopy},
           {505, NodeRole::storage},
           {231, NodeRole::rdma},
           {504, NodeRole::rdma}}};
}

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
                          {"nvidia-nvlink", NodeRole::nvlink},
                          {"nvidia-caps/nvidia-cap14", NodeRole::caps},
                          {"nvidia-caps-imex-channels/channel0", NodeRole::imex},
                          {"gdrdrv", NodeRole::gdrcopy},
                          {"nvidia-fs0", NodeRole::storage},
                          {"infiniband/uverbs12", NodeRole::rdma},
                          {"nvidia-nvswitch3", NodeRole::nvswitch}}) {
    const auto name = parse_node_name(row.name);
    ASSERT_TRUE(name) << row.name;
    EXPECT_EQ(name->role, row.role) << row.name;
  }
  EXPECT_EQ(parse_node_name("nvidia12")->minor, 12U);
  for (const char* name : {"",
                           "nvidia",
                           "nvidia248",
                           "nvidia-1",
                           "nvidia0x",
                           "nvidiactl2",
                           "Nvidia0",
                           "xnvidia0",
                           "nvidia-caps",
                           "nvidia99999999999999999999",
                           "uverbs0",
                           "channel0",
                           "infiniband/uverbs",
                           "infiniband/uverbs0/x",
                           "infiniband/umad0",
                           "nvidia-fs",
                           "nvidia-fsx",
                           "gdrdrv0",
                           "nvidia-nvlink0",
                           "dri/card0"})
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
  EXPECT_EQ(role(508, 7), NodeRole::imex);
  EXPECT_EQ(role(507, 0), NodeRole::nvlink);
  EXPECT_EQ(role(506, 0), NodeRole::gdrcopy);
  EXPECT_EQ(role(505, 3), NodeRole::storage);
  EXPECT_EQ(role(504, 0), NodeRole::rdma);
  EXPECT_EQ(role(231, 192), NodeRole::rdma);
  EXPECT_EQ(role(231, 223), NodeRole::rdma);
  EXPECT_FALSE(role(231, 0));    // umad, of the same major
  EXPECT_FALSE(role(231, 224));  // ucm
  EXPECT_FALSE(role(1, 5));
  EXPECT_FALSE(classify_device_number({true, {}}, makedev(0, 0)));
}

TEST(ParseDeviceMajors, KnowsEveryNameAndBothMajorsOfVerbs) {
  const auto parsed = parse_device_majors(
      "Character devices:\n  1 mem\n195 nvidia\n231 infiniband_mad\n231 infiniband_verbs\n234 nvidia-nvswitch\n235 "
      "nvidia-nvlink\n236 nvidia-caps\n237 nvidia-caps-imex-channels\n238 infiniband_verbs\n239 nvidia-fs\n240 "
      "gdrdrv\n511 nvidia-uvm\n\nBlock devices:\n  8 nvidia-fs\n");
  EXPECT_TRUE(parsed.known);
  EXPECT_EQ(parsed.entries.size(), 9U);
  const auto role = [&](unsigned number, unsigned minor_number) {
    const auto name = classify_device_number(parsed, makedev(number, minor_number));
    return name ? name->role : NodeRole::other;
  };
  EXPECT_EQ(role(236, 2), NodeRole::caps);
  EXPECT_EQ(role(237, 2), NodeRole::imex);
  EXPECT_EQ(role(238, 0), NodeRole::rdma);
  EXPECT_EQ(role(239, 0), NodeRole::storage);
  EXPECT_EQ(role(240, 0), NodeRole::gdrcopy);
  EXPECT_FALSE(classify_device_number(parsed, makedev(8, 0)));
  EXPECT_FALSE(parse_device_majors("").known);
}

TEST(EndsInNodeName, WhoeverWroteThePath) {
  for (const char* path : {"/dev/nvidia0", "/srv/box/dev/nvidiactl", "/dev/nvidia-uvm (deleted)",
                           "/dev/nvidia0\\040(deleted)", "/dev/infiniband/uverbs0", "/dev/nvidia-caps/nvidia-cap1"})
    EXPECT_TRUE(ends_in_node_name(path)) << path;
  for (const char* path : {"", "/", "nvidia0", "/dev/uverbs0", "/dev/nvidia0/", "/dev/nvidia0/x", "/uverbs0",
                           "/dev/nvidia-nvswitch0/x", "/dev/nvidia0 (deleted) (deleted)x"})
    EXPECT_FALSE(ends_in_node_name(path)) << path;
}

TEST(DeviceNodes, ADriverIsNotWhatWorksBesideIt) {
  DeviceNodes nodes({}, majors());
  EXPECT_FALSE(nodes.has_driver());
  (void)nodes.index_of({NodeKind::character, makedev(231, 192), 0});
  (void)nodes.index_of({NodeKind::dma_buf, 12, 34});
  EXPECT_FALSE(nodes.has_driver());
  (void)nodes.index_of({NodeKind::character, makedev(195, 255), 0});
  EXPECT_TRUE(nodes.has_driver());
}

TEST(DeviceNodes, ADmaBufIsTheSameOneAfterSorting) {
  DeviceNodes nodes({}, majors());
  const NodeKey buffer{NodeKind::dma_buf, 12, 34};
  (void)nodes.index_of(buffer);
  (void)nodes.index_of({NodeKind::character, makedev(195, 0), 0});
  (void)nodes.sort();
  EXPECT_EQ(nodes.nodes().size(), 2U);
  const auto& node = nodes.nodes()[nodes.index_of(buffer)];
  EXPECT_EQ(node.role, NodeRole::dma_buf);
  EXPECT_EQ(node.path, "/dmabuf:[34]");
  EXPECT_EQ(nodes.nodes().size(), 2U);
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
  const auto ctl = nodes.index_of({NodeKind::character, makedev(195, 255), 0});
  const auto second = nodes.index_of({NodeKind::character, makedev(195, 10), 0});
  const auto first = nodes.index_of({NodeKind::character, makedev(195, 2), 0});
  const auto moved = nodes.sort();
  EXPECT_EQ(nodes.nodes()[moved[first]].path, "/dev/nvidia2");
  EXPECT_EQ(moved[first], 0U);
  EXPECT_EQ(moved[second], 1U);
  EXPECT_EQ(nodes.nodes()[moved[ctl]].path, "/dev/nvidiactl");
  EXPECT_EQ(nodes.index_of({NodeKind::character, makedev(195, 10), 0}), 1U);
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
