// SPDX-License-Identifier: Apache-2.0
#include "attribute/shm_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vacate {
namespace {

using ::testing::HasSubstr;
using V = ShmVerdict;

constexpr double kNow = 1'700'000'000;
constexpr std::uint64_t kDevice = 26;

/// Everything visible, by root, with files that are two hours old.
class Judged {
 public:
  Judged() {
    snapshot.time = kNow;
    snapshot.caller.root = true;
    snapshot.visibility.all_references = true;
    snapshot.places.push_back({"/dev/shm", kDevice, false, false, {}, {}});
  }
  ShmSegment& add(const std::string& name, double age = 7200) {
    auto& segment = snapshot.segments.emplace_back();
    segment.name = name;
    segment.identity = {kDevice, snapshot.segments.size() + 100, 4096, 0, 1};
    segment.size = {4096};
    segment.uid = uid_t{1000};
    segment.user = "alice";
    segment.modified = kNow - age;
    return segment;
  }
  void add_keeper(pid_t own_pid, std::vector<std::uint64_t> devices = {kDevice}) {
    snapshot.keepers.push_back({5000, own_pid, false, 1000, kNow - 90000, std::move(devices)});
  }
  [[nodiscard]] ShmFinding judge(std::size_t index = 0) const { return judge_shm(snapshot, request, waived).at(index); }
  [[nodiscard]] V verdict(std::size_t index = 0) const { return judge(index).verdict; }

  ShmSnapshot snapshot;
  ShmRequest request;
  std::set<ShmFileKey> waived;
};

TEST(ShmFindings, OldKnownAndUsedByNobodyIsUnused) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  EXPECT_EQ(judged.verdict(), V::unused);
  EXPECT_EQ(judged.judge().family, "python");
}

TEST(ShmFindings, AnyUseIsUse) {
  for (const auto how : {ShmUse::mapping, ShmUse::descriptor, ShmUse::thread_descriptor, ShmUse::lock}) {
    Judged judged;
    judged.add("psm_0a1b2c3d").users.push_back({0, how});
    EXPECT_EQ(judged.verdict(), V::in_use) << describe(how);
  }
}

TEST(ShmFindings, WhatIsNotSeenIsNotUnused) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  judged.snapshot.visibility.all_references = false;
  judged.snapshot.visibility.blind_spots = {{"fd-denied", "x"}};
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
  judged.request.assume_private = true;
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
  judged.snapshot.visibility.blind_spots = {{"foreign-pid-namespace", "x"}};
  EXPECT_EQ(judged.verdict(), V::unused);
  judged.request.assume_private = false;
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
  // References hidden and nobody said why: not a container's way of hiding.
  judged.request.assume_private = true;
  judged.snapshot.visibility.blind_spots.clear();
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
}

TEST(ShmFindings, AgeCountsFromTheLastChange) {
  Judged judged;
  judged.add("psm_0a1b2c3d", 120);
  EXPECT_EQ(judged.verdict(), V::too_young);
  judged.request.older_than = std::chrono::minutes(1);
  EXPECT_EQ(judged.verdict(), V::unused);
  judged.add("nccl-abcdef", 2).identity.size = 0;
  EXPECT_THAT(judged.judge(1).because, HasSubstr("making it"));
  judged.add("psm_11111111", -3600);
  EXPECT_EQ(judged.verdict(2), V::too_young);
}

TEST(ShmFindings, AWaivedFileNeedsNoAgeButEverythingElse) {
  Judged judged;
  auto& segment = judged.add("psm_0a1b2c3d", 1);
  judged.waived.insert({segment.identity.device, segment.identity.inode});
  EXPECT_EQ(judged.verdict(), V::unused);
  judged.snapshot.segments[0].users.push_back({7, ShmUse::mapping});
  EXPECT_EQ(judged.verdict(), V::in_use);
}

TEST(ShmFindings, UnknownAndForeignNamesStayHoweverOld) {
  Judged judged;
  judged.add("my_feature_store", 1e7);
  judged.add("PostgreSQL.1", 1e7);
  judged.add("hsakmt_shared_mem", 1e7);
  judged.add("vllm_whatever", 1e7);
  EXPECT_EQ(judged.verdict(0), V::unknown_family);
  EXPECT_EQ(judged.verdict(1), V::not_ours);
  EXPECT_EQ(judged.verdict(2), V::not_ours);
  EXPECT_EQ(judged.verdict(3), V::unknown_family);
}

TEST(ShmFindings, WhatIsNoPlainFileStays) {
  Judged judged;
  auto& link = judged.add("psm_0a1b2c3d");
  link.kind = ShmKind::other;
  link.type = "a symbolic link";
  judged.add("psm_0a1b2c3e").identity.links = 2;
  judged.add("psm_0a1b2c3f").locked_down = true;
  judged.add("rtemap_1").kind = ShmKind::huge_page;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(judged.verdict(i), V::not_ours) << i;
}

TEST(ShmFindings, WithoutRootOnlyOnesOwn) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  judged.snapshot.caller.root = false;
  judged.snapshot.caller.uid = 1001;
  EXPECT_EQ(judged.verdict(), V::not_ours);
  judged.snapshot.caller.uid = 1000;
  EXPECT_EQ(judged.verdict(), V::unused);
}

TEST(ShmFindings, ALivingCreatorVetoesInItsOwnNamespaceOnly) {
  Judged judged;
  judged.add("torch_4711_0");
  judged.add_keeper(4711, {99});  // the same number in a container with a /dev/shm of its own
  EXPECT_EQ(judged.verdict(), V::unused);
  judged.add_keeper(4711);
  EXPECT_EQ(judged.verdict(), V::in_use);
  // Its number here says nothing where it has another in its own namespace.
  judged.snapshot.keepers = {{4711, 12, false, 1000, 0, {kDevice}}};
  EXPECT_EQ(judged.verdict(), V::unused);
}

TEST(ShmFindings, AResourceTrackerAnswersForWhateverIsItsUsers) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  judged.add("nccl-abcdef");
  judged.snapshot.keepers = {{9, 9, true, 1000, kNow - 7195, {kDevice}}};
  EXPECT_EQ(judged.verdict(0), V::in_use);
  EXPECT_EQ(judged.verdict(1), V::unused);
  judged.snapshot.keepers[0].started = kNow - 7000;  // by a clock that was set meanwhile
  EXPECT_EQ(judged.verdict(0), V::in_use);
  judged.snapshot.keepers[0] = {9, 9, true, 1001, kNow - 90000, {kDevice}};  // somebody else's
  EXPECT_EQ(judged.verdict(0), V::unused);
}

TEST(ShmFindings, CompanionsStayTogether) {
  Judged judged;
  judged.add("psm3_shm.1000.a");
  judged.add("psm3_nic_affinity_x");
  judged.add("sem.psm3_nic_affinity_x");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(judged.verdict(i), V::unused);
  judged.snapshot.segments[0].users.push_back({7, ShmUse::mapping});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(judged.verdict(i), V::in_use);
  EXPECT_THAT(judged.judge(2).because, HasSubstr("psm3_shm.1000.a"));
}

TEST(ShmFindings, OneJobOfOpenMpiIsOneSet) {
  Judged judged;
  judged.add("vader_segment.n.aaa.0");
  judged.add("vader_segment.n.aaa.1").users.push_back({7, ShmUse::mapping});
  judged.add("vader_segment.n.bbb.0");
  EXPECT_EQ(judged.verdict(0), V::in_use);
  EXPECT_EQ(judged.verdict(2), V::unused);
  EXPECT_EQ(judged.judge(0).set, judged.judge(1).set);
  EXPECT_NE(judged.judge(0).set, judged.judge(2).set);
}

TEST(ShmFindings, ASystemVCreatorWhoIsNotVisibleMayLive) {
  Judged judged;
  auto& segment = judged.add("sysv:7");
  segment.kind = ShmKind::sysv;
  segment.creator = 0;
  judged.request.sysv = true;
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
  judged.request.assume_private = true;
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
}

TEST(ShmFindings, AFileThatBearsTheNameOfAFolderIsUnknown) {
  Judged judged;
  judged.add("joblib_memmapping_folder_4194001_a_b");
  judged.add("joblib_memmapping_folder_4194001_a_b/1.pkl");
  EXPECT_EQ(judged.verdict(0), V::unknown_family);
  EXPECT_EQ(judged.verdict(1), V::unused);
}

TEST(ShmFindings, AFileThatIsMountedSomewhereIsInUse) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  judged.snapshot.mounted = {{kDevice + 1, "/psm_0a1b2c3d"}, {kDevice, "/"}};
  EXPECT_EQ(judged.verdict(), V::unused);
  judged.snapshot.mounted.emplace_back(kDevice, "/sub/psm_0a1b2c3d");
  EXPECT_EQ(judged.verdict(), V::in_use);
}

/// An amount that is not counted to its end hides nobody.
TEST(ShmFindings, WhatDeletedFilesTakeIsNoQuestionOfUse) {
  Judged judged;
  judged.add("psm_0a1b2c3d");
  judged.snapshot.visibility = {{{"foreign-pid-namespace", "x"}, {"deleted-uncounted", "x"}}, false};
  EXPECT_EQ(judged.verdict(), V::cannot_tell);
  judged.request.assume_private = true;
  EXPECT_EQ(judged.verdict(), V::unused);
}

TEST(ShmFindings, SystemVOnlyIfAskedForAndAlone) {
  Judged judged;
  auto& segment = judged.add("sysv:7");
  segment.kind = ShmKind::sysv;
  segment.creator = 4711;
  EXPECT_EQ(judged.verdict(), V::unknown_family);
  judged.request.sysv = true;
  EXPECT_EQ(judged.verdict(), V::unused);
  // By the clock it started after the segment was made: the clock may have been set.
  for (const double started : {kNow - 90000, kNow - 1}) {
    judged.snapshot.keepers = {{4711, 4711, false, 0, started, {}}};
    EXPECT_EQ(judged.verdict(), V::in_use);
  }
  judged.snapshot.keepers.clear();
  judged.snapshot.segments[0].users.push_back({0, ShmUse::attachment});
  EXPECT_EQ(judged.verdict(), V::in_use);
}

}  // namespace
}  // namespace vacate
