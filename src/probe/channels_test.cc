// SPDX-License-Identifier: Apache-2.0
#include "probe/channels.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

namespace vacate {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

using Ends = std::vector<ChannelEnd>;

Ends listed(const ChannelList& list) {
  Ends ends;
  for (const auto& end : list) ends.push_back(end);
  return ends;
}

ChannelList packed(const Ends& ends) {
  ChannelList list;
  for (const auto& end : ends) list.push_back(end);
  return list;
}

/// Tables of several processes, of threads among them, with inodes near and far.
Ends some_ends(unsigned seed, std::size_t count) {
  std::mt19937_64 random(seed);
  Ends ends;
  while (ends.size() < count) {
    const auto pid = static_cast<pid_t>(random() % 4000000 + 1);
    const auto tid = random() % 4 == 0 ? pid + 1 : pid;
    std::int32_t fd = 0;
    for (auto n = random() % 300; n > 0 && ends.size() < count; --n) {
      fd += static_cast<std::int32_t>(random() % 20);
      ends.push_back({random() >> random() % 64, pid, tid, fd, random() % 2 == 0});
    }
  }
  return ends;
}

TEST(ChannelList, GivesBackWhatWasAdded) {
  EXPECT_THAT(listed({}), IsEmpty());
  const auto ends = some_ends(1, 30000);  // several blocks
  const auto list = packed(ends);
  EXPECT_EQ(list.size(), ends.size());
  EXPECT_THAT(listed(list), ElementsAreArray(ends));
  EXPECT_THAT(listed(list), ElementsAreArray(ends));  // a walk over it changes nothing
}

TEST(ChannelList, KeepsTheLargestAndTheSmallestNumbers) {
  const auto large = std::numeric_limits<std::uint64_t>::max();
  const Ends ends = {
      {large, 1, 1, std::numeric_limits<std::int32_t>::max(), true},
      {0, 1, 1, 0, false},
      {large, 1, 2, -1, true},
      {large / 2 + 1, std::numeric_limits<pid_t>::max(), 1, std::numeric_limits<std::int32_t>::min(), false},
      {0, 0, 0, 0, false}};
  EXPECT_THAT(listed(packed(ends)), ElementsAreArray(ends));
}

TEST(ChannelList, ListsOfSeveralBecomeOneInOrder) {
  Ends all;
  ChannelList list;
  for (unsigned part = 0; part < 20; ++part) {
    const auto ends = some_ends(part, part % 3 == 0 ? 0 : 400 * part);
    all.insert(all.end(), ends.begin(), ends.end());
    list.append(packed(ends));
    all.push_back({part, 7, 7, 3, true});
    list.push_back(all.back());
  }
  EXPECT_EQ(list.size(), all.size());
  EXPECT_THAT(listed(list), ElementsAreArray(all));
}

TEST(ChannelList, LeavesOutWhoHasEnded) {
  Ends ends = some_ends(5, 5000);
  const std::set<pid_t> gone = {ends[0].pid, ends[2500].pid, ends.back().pid};
  auto list = packed(ends);
  list.erase_processes(gone);
  std::erase_if(ends, [&](const ChannelEnd& end) { return gone.contains(end.pid); });
  EXPECT_EQ(list.size(), ends.size());
  EXPECT_THAT(listed(list), ElementsAreArray(ends));
}

// What a machine of 3,000 processes with 200 pipe and socket ends each may take: a scan has 16 MiB for everything.
TEST(ChannelList, TakesAFewBytesAnEnd) {
  ChannelList list;
  std::uint64_t inode = 1000000;
  for (pid_t pid = 1; pid <= 3000; ++pid) {
    ChannelList part;
    for (std::int32_t fd = 3; fd < 203; ++fd)
      part.push_back({inode += static_cast<unsigned>(fd) % 2 * 7, pid, pid, fd, fd % 3 == 0});
    part.shrink_to_fit();
    list.append(std::move(part));
  }
  EXPECT_EQ(list.size(), 600000U);
  EXPECT_LT(list.bytes(), std::size_t{3} << 20U);
}

}  // namespace
}  // namespace vacate
