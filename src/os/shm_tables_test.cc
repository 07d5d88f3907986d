// SPDX-License-Identifier: Apache-2.0
#include "os/shm_tables.h"

#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "os/procfs.h"

namespace vacate {
namespace {

TEST(FileLocks, EveryKindIsAUser) {
  EXPECT_EQ(parse_lock("1: FLOCK  ADVISORY  READ 4711 00:1a:3456 0 EOF"), (FileLock{4711, makedev(0, 0x1a), 3456}));
  EXPECT_EQ(parse_lock("12: POSIX  ADVISORY  WRITE 7 103:02:99 0 1"), (FileLock{7, makedev(0x103, 2), 99}));
  EXPECT_EQ(parse_lock("2: OFDLCK ADVISORY  WRITE -1 00:1a:5 0 EOF"), (FileLock{0, makedev(0, 0x1a), 5}));
  EXPECT_EQ(parse_lock("3: LEASE  ACTIVE    READ 9 00:1a:6 0 EOF"), (FileLock{9, makedev(0, 0x1a), 6}));
  EXPECT_EQ(parse_lock("3: -> FLOCK  ADVISORY  WRITE 8 00:1a:6 0 EOF"), (FileLock{8, makedev(0, 0x1a), 6}));
}

TEST(FileLocks, RubbishIsNoLockAndMakesTheTableIncomplete) {
  for (const std::string line :
       {"1:", "x FLOCK A R 1 00:1a:1 0 EOF", "1: FLOCK A R one 00:1a:1 0 EOF", "1: FLOCK A R 1 00:1a 0 EOF",
        "1: FLOCK A R 1 zz:1a:1 0 EOF", "1: FLOCK A R 1 00:1a:-1 0 EOF", "1: FLOCK A R 99999999999 00:1a:1 0 EOF",
        "1: FLOCK A R 1 fffff:1a:1 0 EOF", "\x1b[31m", "1: -> ->"}) {
    EXPECT_FALSE(parse_lock(line)) << line;
    EXPECT_FALSE(parse_locks(line + "\n").complete) << line;
  }
}

TEST(FileLocks, ATableHasThemAllAndALockWithoutAFileIsNobodys) {
  const auto table = parse_locks(
      "1: FLOCK  ADVISORY  READ 1 00:1a:1 0 EOF\n1: -> FLOCK  ADVISORY  READ 2 00:1a:1 0 EOF\n"
      "2: POSIX  ADVISORY  READ 3 <none>:0 0 EOF\n");
  EXPECT_EQ(table.locks.size(), 2U);
  EXPECT_TRUE(table.complete);
}

constexpr const char* kHeading =
    "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      "
    "dtime   "
    "   ctime                   rss                  swap\n";

TEST(SysvTable, ARowIsRead) {
  const auto rows =
      parse_sysv_segments(std::string(kHeading) +
                          "         0          5  1600            268435456   100   101      2  1001  1001 "
                          "    0     0 1700000001 1700000002 1700000000                 4096            "
                          "         0\n");
  ASSERT_EQ(rows.size(), 1U);
  SysvSegment wanted;
  wanted.id = 5;
  wanted.mode = 01600;
  wanted.size = 268435456;
  wanted.creator = 100;
  wanted.last = 101;
  wanted.attached = 2;
  wanted.uid = 1001;
  wanted.attached_at = 1700000001;
  wanted.detached_at = 1700000002;
  wanted.changed_at = 1700000000;
  wanted.resident = 4096;
  EXPECT_EQ(rows[0], wanted);
}

TEST(SysvTable, RubbishIsNoRow) {
  for (const std::string line :
       {"", "0 5", "0 -1 600 1 1 1 0 0 0 0 0 0 0 0 0 0", "0 5 9 1 1 1 0 0 0 0 0 0 0 0 0 0",
        "0 5 600 x 1 1 0 0 0 0 0 0 0 0 0 0", "0 99999999999 600 1 1 1 0 0 0 0 0 0 0 0 0 0",
        "0 5 777777777 1 1 1 0 0 0 0 0 0 0 0 0 0", "0 5 600 1 1 1 0 5000000000 0 0 0 0 0 0 0 0"})
    EXPECT_FALSE(parse_sysv_segment(line)) << line;
  EXPECT_TRUE(parse_sysv_segment("0 5 600 1 1 1 0 0 0 0 0 0 0 0 0 0"));
}

/// A segment of this test's own, seen through the kernel's table.
class SysvRemoval : public ::testing::Test {
 protected:
  void SetUp() override {
    id_ = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    ASSERT_GE(id_, 0);
  }
  void TearDown() override { (void)shmctl(id_, IPC_RMID, nullptr); }
  [[nodiscard]] bool exists() const {
    shmid_ds state{};
    return shmctl(id_, IPC_STAT, &state) == 0;
  }
  [[nodiscard]] ShmSegment seen() const {
    ShmSegment segment;
    segment.kind = ShmKind::sysv;
    for (const auto& row : parse_sysv_segments(read_file("/proc/sysvipc/shm").value_or(""))) {
      if (row.id != id_) continue;
      segment.identity.inode = static_cast<std::uint64_t>(row.id);
      segment.identity.size = row.size;
      segment.creator = row.creator;
      segment.modified = static_cast<double>(std::max({row.attached_at, row.detached_at, row.changed_at}));
    }
    return segment;
  }
  int id_ = -1;
};

TEST_F(SysvRemoval, RemovesWhatNobodyHasAttached) {
  const auto segment = seen();
  EXPECT_EQ(remove_sysv_unused(segment).status, ShmStatus::removed);
  EXPECT_FALSE(exists());
  EXPECT_EQ(remove_sysv_unused(segment).status, ShmStatus::already_gone);
}

TEST_F(SysvRemoval, KeepsWhatIsAttachedOrAnother) {
  auto other = seen();
  other.identity.size += 1;
  EXPECT_EQ(remove_sysv_unused(other).status, ShmStatus::changed);
  void* memory = shmat(id_, nullptr, 0);
  EXPECT_EQ(remove_sysv_unused(seen()).status, ShmStatus::in_use);
  shmdt(memory);
  EXPECT_TRUE(exists());
}

}  // namespace
}  // namespace vacate
