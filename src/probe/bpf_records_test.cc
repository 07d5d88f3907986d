// SPDX-License-Identifier: Apache-2.0
// Records of the programs in the kernel: cut from a stream, judged as a walk over /proc would have.
#include "probe/bpf_records.h"

#include <gmock/gmock.h>
#include <sys/sysmacros.h>

#include "probe/bpf/holders_records.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::uint32_t kNvidia0 = 195U << 20U;

std::string bytes_of(const vacate_short_record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}
std::string bytes_of(const vacate_long_record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

/// A descriptor of /dev/nvidia0.
std::string node(pid_t pid, pid_t tid, int fd, std::uint64_t table, unsigned flags = 0) {
  return bytes_of(vacate_long_record{{VACATE_CHARACTER | VACATE_LONG | flags, pid, tid, fd, 77}, 6, kNvidia0, table});
}

Process process(pid_t pid) {
  Process process;
  process.key.pid = pid;
  process.state = 'S';
  process.threads = 1;
  return process;
}

class Findings : public ::testing::Test {
 protected:
  Findings() {
    auto kernel_thread = process(2);
    kernel_thread.kernel_thread = true;
    auto zombie = process(40);
    zombie.state = 'Z';
    zombie.condition = Condition::zombie;
    processes_ = {kernel_thread, process(10), process(20), process(30), zombie};
  }
  BpfFindings make(bool is_watching = false) {
    return {processes_, nodes_, is_watching, [this](pid_t, pid_t) { return shares_; }};
  }
  static bool feed(BpfFindings& findings, const std::string& bytes) {
    return stream_of(bytes, [&](const BpfRecord& record) { findings.take_descriptor(record); });
  }
  static bool feed_mappings(BpfFindings& findings, const std::string& bytes) {
    return stream_of(bytes, [&](const BpfRecord& record) { findings.take_mapping(record); });
  }
  template <class Take>
  static bool stream_of(const std::string& bytes, const Take& take) {
    BpfRecordStream stream;
    return stream.feed(bytes, take) && stream.at_boundary();
  }

  std::vector<Process> processes_;
  DeviceNodes nodes_{{}, {}};
  bool shares_ = true;
};

TEST(BpfRecordStream, CutsPiecesOfAnySize) {
  const auto bytes = bytes_of(vacate_short_record{VACATE_PIPE, 10, 10, 3, 5}) + node(10, 10, 4, 2) +
                     bytes_of(vacate_short_record{VACATE_SOCKET, 20, 20, 7, 6});
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    BpfRecordStream stream;
    std::vector<int> fds;
    for (std::size_t at = 0; at < bytes.size(); at += size)
      ASSERT_TRUE(stream.feed(std::string_view(bytes).substr(at, size),
                              [&](const BpfRecord& record) { fds.push_back(record.fd); }));
    EXPECT_TRUE(stream.at_boundary());
    EXPECT_THAT(fds, ElementsAre(3, 4, 7));
  }
}

TEST(BpfRecordStream, RefusesWhatIsNoRecord) {
  const auto ignore = [](const BpfRecord&) {};
  for (const unsigned kind : {0U, 9U, 0xFFU, 0x401U, ~0U}) {
    BpfRecordStream stream;
    EXPECT_FALSE(stream.feed(bytes_of(vacate_short_record{kind, 1, 1, 1, 1}), ignore)) << kind;
  }
  BpfRecordStream stream;
  EXPECT_TRUE(stream.feed(node(10, 10, 3, 2).substr(0, 30), ignore));
  EXPECT_FALSE(stream.at_boundary());
}

TEST(BpfRecordStream, NumbersOfDevices) {
  EXPECT_EQ(user_device(kNvidia0 | 255), makedev(195, 255));
  EXPECT_EQ(user_device(0xFFF), makedev(0, 0xFFF));
  for (const std::uint32_t device : {0U, 15U, kNvidia0, (4095U << 20U) | 0xFFFFFU})
    EXPECT_EQ(kernel_device(user_device(device)), device);
}

TEST_F(Findings, LeavesOutWhomAWalkDoesNotLookInto) {
  auto found = make();
  ASSERT_TRUE(feed(found, node(2, 2, 3, 2) + node(10, 10, 3, 2) + node(25, 25, 3, 2) + node(40, 40, 3, 2)));
  ASSERT_THAT(found.hits, SizeIs(1));
  EXPECT_EQ(found.hits[0].pid, 10);
  EXPECT_EQ(found.hits[0].node, (NodeKey{NodeKind::character, makedev(195, 0), 0}));
}

TEST_F(Findings, APathIsNoHolder) {
  auto found = make();
  ASSERT_TRUE(feed(found, node(10, 10, 3, 2, VACATE_PATH_ONLY)));
  EXPECT_THAT(found.hits, IsEmpty());
}

TEST_F(Findings, ATableOfSeveralThreadsCountsOnce) {
  const auto bytes = node(10, 10, 3, 2) + node(10, 11, 3, 9) + node(10, 11, 4, 9) + node(10, 12, 3, 9) +
                     node(10, 12, 4, 9) + node(20, 21, 3, 9);
  auto found = make();
  ASSERT_TRUE(feed(found, bytes));
  EXPECT_THAT(found.hits, SizeIs(4));
  // The table of the one is gone and another has its place.
  shares_ = false;
  auto apart = make();
  ASSERT_TRUE(feed(apart, bytes));
  EXPECT_THAT(apart.hits, SizeIs(6));
}

TEST_F(Findings, ComeInTheOrderOfAWalk) {
  auto found = make();
  ASSERT_TRUE(feed(found, node(20, 5, 3, 8) + node(20, 20, 9, 2) + node(20, 20, 4, 2) + node(10, 10, 3, 2)));
  sort_as_walked(found.hits, found.files);
  std::vector<std::pair<pid_t, int>> order;
  for (const auto& hit : found.hits) order.emplace_back(hit.tid, hit.fd);
  EXPECT_THAT(order, ElementsAre(std::pair(10, 3), std::pair(20, 4), std::pair(20, 9), std::pair(5, 3)));
}

TEST_F(Findings, RingsAndBuffersAreAskedAbout) {
  auto found = make();
  for (const unsigned kind : {unsigned{VACATE_ANONYMOUS}, unsigned{VACATE_BUFFER}})
    ASSERT_TRUE(feed(found, bytes_of(vacate_long_record{{kind | VACATE_LONG, 10, 10, 3, 8}, 16, 0, 2})));
  EXPECT_THAT(found.to_ask, SizeIs(2));
  EXPECT_THAT(found.hits, IsEmpty());
}

TEST_F(Findings, ThreadsThatCameBeforeTheirProcessAreKeptByProcess) {
  const auto sharer = [](pid_t pid, pid_t tid) { return bytes_of(vacate_short_record{VACATE_SHARER, pid, tid, 0, 0}); };
  auto found = make();
  ASSERT_TRUE(feed(found, sharer(20, 5) + sharer(10, 6) + sharer(20, 7) + sharer(2, 1)));
  EXPECT_THAT(found.sharers, ElementsAre(Pair(10, ElementsAre(6)), Pair(20, ElementsAre(5, 7))));
  EXPECT_THAT(found.hits, IsEmpty());
  ASSERT_TRUE(feed_mappings(found, sharer(10, 6)));
  EXPECT_THAT(found.mappings().hits, IsEmpty());
}

TEST_F(Findings, OfRestlessProcessesNothingIsLeft) {
  auto found = make();
  ASSERT_TRUE(feed(found, node(10, 10, 3, 2) + node(20, 20, 3, 2) +
                              bytes_of(vacate_short_record{VACATE_PIPE, 20, 20, 4, 5}) +
                              bytes_of(vacate_short_record{VACATE_SHARER, 20, 5, 0, 0}) +
                              bytes_of(vacate_short_record{VACATE_RESTLESS, 20, 20, 0, 0})));
  found.leave_out_restless();
  ASSERT_THAT(found.hits, SizeIs(1));
  EXPECT_EQ(found.hits[0].pid, 10);
  EXPECT_TRUE(found.channels.empty());
  EXPECT_THAT(found.sharers, IsEmpty());
  EXPECT_THAT(found.restless, ElementsAre(20));
}

TEST_F(Findings, WhoWatchesGetsFilesAndNoNodes) {
  const vacate_long_record file{{VACATE_FILE | VACATE_LONG | VACATE_PATH_ONLY, 10, 10, 3, 8}, 25, 0, 2};
  auto found = make(true);
  ASSERT_TRUE(feed(found, bytes_of(file)));
  ASSERT_THAT(found.files, SizeIs(1));
  EXPECT_EQ(found.files[0].device, makedev(0, 25));
  EXPECT_EQ(found.files[0].inode, 8U);
  ASSERT_TRUE(feed_mappings(found, bytes_of(file) + bytes_of(file)));
  const auto mappings = found.mappings();
  ASSERT_THAT(mappings.hits, SizeIs(1));
  EXPECT_EQ(mappings.hits[0].node, (NodeKey{NodeKind::file, makedev(0, 25), 8}));
  EXPECT_EQ(mappings.hits[0].count, 2U);
}

TEST_F(Findings, MemoryThatSeveralThreadsBringCountsOnce) {
  auto found = make();
  // 11 went away while its memory was read.
  ASSERT_TRUE(feed_mappings(found, node(10, 11, 0, 0) + node(10, 12, 0, 0) + node(10, 12, 0, 0)));
  const auto mappings = found.mappings();
  ASSERT_THAT(mappings.hits, SizeIs(1));
  EXPECT_EQ(mappings.hits[0].count, 2U);
}

}  // namespace
}  // namespace vacate
