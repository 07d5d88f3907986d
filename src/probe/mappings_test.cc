// SPDX-License-Identifier: Apache-2.0
// Matching of maps, pure and on a real process that has a device mapped and no descriptor of it.
#include "probe/mappings.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe/references.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const NodeKey kNode{NodeKind::file, makedev(0, 6), 77};

TEST(MapsMatcher, FindsNodesInPiecesOfAnySize) {
  const std::string maps =
      "1000-2000 r-xp 00000000 fd:01 5                    /lib/libc.so\n"
      "2000-3000 rw-p 00000000 00:00 0\n"
      "3000-4000 rw-s 00000000 00:06 77                   /dev/nvidia0\n"
      "rubbish\n\n"
      "4000-5000 rw-s 00001000 00:06 77                   /dev/nvidia0\n"
      "5000-6000 rw-s 00001000 00:06 78                   /dev/nvidia0\n";
  for (std::size_t size = 1; size <= maps.size(); ++size) {
    unsigned asked = 0;
    MapsMatcher matcher([&](const MapsLine& line) {
      ++asked;
      return MapsMatcher::Identified{line.inode == 77 ? std::optional(kNode) : std::nullopt, true};
    });
    matcher.start();
    EXPECT_TRUE(matcher.empty());
    for (std::size_t at = 0; at < maps.size(); at += size) matcher.feed(std::string_view(maps).substr(at, size));
    EXPECT_THAT(matcher.found(), ElementsAre(Pair(kNode, 2U)));
    EXPECT_EQ(asked, 3U);  // once a file
    EXPECT_FALSE(matcher.empty());
  }
}

TEST(MapsMatcher, AsksAgainWhereTheMappingWentAway) {
  unsigned asked = 0;
  MapsMatcher matcher([&](const MapsLine&) { return MapsMatcher::Identified{std::nullopt, ++asked > 1}; });
  for (int process = 0; process < 3; ++process) {
    matcher.start();
    matcher.feed("1000-2000 r-xp 00000000 fd:01 5 /a\n3000-4000 r-xp 00000000 fd:01 6 /b\n");
  }
  EXPECT_GE(asked, 3U);
}

TEST(MappingScan, FindsADeviceMappedByARealProcess) {
  const UniqueFd zero(open("/dev/zero", O_RDWR | O_CLOEXEC));
  // Private: a shared mapping of /dev/zero becomes one of anonymous shared memory.
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, zero.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const DeviceNodes by_number({{NodeRole::gpu, "/dev/nvidia0", 0, makedev(1, 5), 0, 0}}, {});
  const auto found = MappingScan({getpid(), 1 << 22}, by_number).finish();
  EXPECT_THAT(found.stuck, IsEmpty());
  if (found.hits.empty()) GTEST_SKIP() << "map_files needs CAP_CHECKPOINT_RESTORE";
  EXPECT_EQ(found.hits.front().pid, getpid());
  EXPECT_EQ(found.hits.front().node, (NodeKey{NodeKind::character, makedev(1, 5), 0}));
  munmap(mapped, 4096);
  EXPECT_THAT(MappingScan({getpid()}, by_number).finish().hits, IsEmpty());
}

TEST(ReferencesFrom, SumsUpAndNames) {
  DeviceNodes nodes({}, {});
  const NodeKey gpu{NodeKind::character, makedev(195, 0), 0};
  std::vector<NodeHit> hits;
  for (int fd = 3; fd < 10; ++fd) hits.push_back({50, 50, fd, gpu});
  hits.push_back({50, 51, 3, gpu});  // the shared table seen again
  hits.push_back({60, 61, 5, gpu});
  const auto references = references_from(hits, {{60, gpu, 2}}, nodes);
  ASSERT_EQ(references.size(), 3U);
  EXPECT_EQ(references[0], (Reference{50, EvidenceKind::descriptor, 0, 7, "fd 3, 4, 5, 6 and 3 more"}));
  EXPECT_EQ(references[1], (Reference{60, EvidenceKind::thread_descriptor, 0, 1, "thread 61 fd 5"}));
  EXPECT_EQ(references[2], (Reference{60, EvidenceKind::mapping, 0, 2, "mapped"}));
}

}  // namespace
}  // namespace vacate
