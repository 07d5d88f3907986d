// SPDX-License-Identifier: Apache-2.0
// The library where this machine has it, on journals of the test's own. One with entries needs a machine with systemd.
#include "os/journal_reader.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "os/test_mounts.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;

const JournalQuestion kJournalQuestion{"6f1d3c0a5b8e4f27a94c2d71e0b3586a", "VACATE_RECORD", 0};

bool lay_out_journals() {
  return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") == 0 && mount("tmpfs", "/var/log", "tmpfs", 0, "mode=755") == 0;
}

TEST(JournalReader, WithoutFilesThereIsNoJournal) {
  testing::in_mount_namespace(lay_out_journals, [] {
    EXPECT_FALSE(has_journal());
    ASSERT_EQ(mkdir("/var/log/journal", 0755), 0);
    EXPECT_TRUE(has_journal());
  });
}

TEST(JournalReader, AFileThatIsNoneHasNoEntriesAndHurtsNobody) {
  const auto there = read_journal(kJournalQuestion, Deadline::after(10s));
  if (!there && there.error().code == ErrorCode::unsupported) GTEST_SKIP() << there.error().message;
  testing::in_mount_namespace(lay_out_journals, [] {
    ASSERT_EQ(mkdir("/var/log/journal", 0755), 0);
    ASSERT_EQ(mkdir("/var/log/journal/0123456789abcdef0123456789abcdef", 0755), 0);
    std::ofstream("/var/log/journal/0123456789abcdef0123456789abcdef/system.journal")
        << "LPKSHHRH" << std::string(5000, '\xff');
    const auto entries = read_journal(kJournalQuestion, Deadline::after(10s));
    ASSERT_TRUE(entries) << entries.error().message;
    EXPECT_TRUE(entries->empty());
  });
}

}  // namespace
}  // namespace vacate
