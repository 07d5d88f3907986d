// SPDX-License-Identifier: Apache-2.0
// Real files on a real tmpfs. The rounds of the race test are in tests/shm.
#include "os/shm_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace vacate {
namespace {

/// A directory of this test's own on the machine's tmpfs.
class ShmFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/dev/shm/vacate-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    auto directory = ShmDirectory::open(path_);
    ASSERT_TRUE(directory);
    directory_.emplace(*std::move(directory));
    const auto system = directory_->file_system();
    ASSERT_TRUE(system);
    if (!system->tmpfs) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  [[nodiscard]] UniqueFd make(const std::string& name, int size = 4096) const {
    UniqueFd file(open(at(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(file.get(), size), 0);
    return file;
  }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] ShmEntry entry(const std::string& name) const {
    for (const auto& each : directory_->list().entries)
      if (each.name == name) return each;
    return {};
  }
  [[nodiscard]] ShmResult remove(const std::string& name) const { return remove(name, entry(name).identity); }
  [[nodiscard]] ShmResult remove(const std::string& name, const ShmIdentity& expected) const {
    const LeaseBreaksIgnored guard;
    return unlink_unused(*directory_, name, expected);
  }
  [[nodiscard]] bool exists(const std::string& name) const { return access(at(name).c_str(), F_OK) == 0; }
  [[nodiscard]] std::size_t count() const { return directory_->list().entries.size(); }

  std::string path_;
  std::optional<ShmDirectory> directory_;
};

TEST_F(ShmFilesTest, ListsWhatThereIsWithoutFollowingLinks) {
  (void)make("b", 123);
  (void)make("new\nline\x1b[31m");
  ASSERT_EQ(symlink("/etc/passwd", at("link").c_str()), 0);
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  const auto listing = directory_->list();
  EXPECT_TRUE(listing.complete);
  ASSERT_EQ(listing.entries.size(), 4U);
  EXPECT_EQ(listing.entries[0].name, "b");
  EXPECT_EQ(listing.entries[0].identity.size, 123U);
  EXPECT_EQ(listing.entries[2].mode & S_IFMT, static_cast<unsigned>(S_IFLNK));
  EXPECT_EQ(listing.entries[3].name, "new\nline\x1b[31m");
}

TEST_F(ShmFilesTest, RemovesAFileThatNobodyHasWhateverItsName) {
  for (const std::string name : {"psm_12345678", "new\nline\x1b[31m", "-rf", " "}) {
    make(name).reset();
    EXPECT_EQ(remove(name).status, ShmStatus::removed) << name;
  }
  EXPECT_EQ(count(), 0U);
}

TEST_F(ShmFilesTest, KeepsWhatIsOpenMappedOrLeased) {
  auto file = make("psm_12345678");
  EXPECT_EQ(remove("psm_12345678").status, ShmStatus::in_use);
  void* memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0);
  file.reset();
  EXPECT_EQ(remove("psm_12345678").status, ShmStatus::in_use);
  munmap(memory, 4096);
  const UniqueFd leased(open(at("psm_12345678").c_str(), O_RDONLY | O_CLOEXEC));
  const LeaseBreaksIgnored guard;
  ASSERT_EQ(fcntl(leased.get(), F_SETLEASE, F_WRLCK), 0);
  EXPECT_EQ(remove("psm_12345678").status, ShmStatus::in_use);
  EXPECT_TRUE(exists("psm_12345678"));
  EXPECT_EQ(count(), 1U);
}

TEST_F(ShmFilesTest, KeepsAnotherFileOfTheSameName) {
  make("psm_12345678").reset();
  const auto seen = entry("psm_12345678").identity;
  ASSERT_EQ(unlink(at("psm_12345678").c_str()), 0);
  make("psm_12345678").reset();
  EXPECT_EQ(remove("psm_12345678", seen).status, ShmStatus::changed);
  EXPECT_TRUE(exists("psm_12345678"));
}

TEST_F(ShmFilesTest, KeepsWhatGrewOrWasWritten) {
  make("psm_12345678").reset();
  const auto seen = entry("psm_12345678").identity;
  ASSERT_EQ(truncate(at("psm_12345678").c_str(), 8192), 0);
  EXPECT_EQ(remove("psm_12345678", seen).status, ShmStatus::changed);
  auto touched = entry("psm_12345678").identity;
  touched.modified -= 1;
  EXPECT_EQ(remove("psm_12345678", touched).status, ShmStatus::changed);
  EXPECT_TRUE(exists("psm_12345678"));
}

TEST_F(ShmFilesTest, KeepsWhatHasAnotherName) {
  make("psm_12345678").reset();
  ASSERT_EQ(link(at("psm_12345678").c_str(), at("other").c_str()), 0);
  EXPECT_EQ(remove("psm_12345678").status, ShmStatus::changed);
  EXPECT_EQ(count(), 2U);
}

/// Each takes the name of a file that was seen.
TEST_F(ShmFilesTest, KeepsLinksDirectoriesFifosAndSockets) {
  make("victim").reset();
  const auto victim = entry("victim").identity;
  ASSERT_EQ(symlink("victim", at("a").c_str()), 0);
  ASSERT_EQ(mkdir(at("b").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo(at("c").c_str(), 0600), 0);
  for (const std::string name : {"a", "b", "c"}) {
    EXPECT_EQ(remove(name).status, ShmStatus::changed) << name;
    EXPECT_EQ(remove(name, victim).status, ShmStatus::changed) << name;
  }
  EXPECT_EQ(count(), 4U);
  EXPECT_EQ(remove("nothing", victim).status, ShmStatus::already_gone);
}

TEST_F(ShmFilesTest, GoesOneDirectoryDownButThroughNoLink) {
  ASSERT_EQ(mkdir(at("joblib").c_str(), 0700), 0);
  make("joblib/a.pkl").reset();
  const auto below = directory_->open_below("joblib");
  ASSERT_TRUE(below);
  const auto seen = below->list().entries.at(0).identity;
  ASSERT_EQ(symlink("joblib", at("link").c_str()), 0);
  EXPECT_EQ(remove("link/a.pkl", seen).status, ShmStatus::changed);
  EXPECT_EQ(remove("joblib/../joblib/a.pkl", seen).status, ShmStatus::cannot_tell);
  EXPECT_EQ(remove("joblib/a.pkl", seen).status, ShmStatus::removed);
  EXPECT_TRUE(exists("joblib"));
}

TEST_F(ShmFilesTest, WhatBelongsTogetherGoesTogetherOrNotAtAll) {
  const LeaseBreaksIgnored guard;
  make("a").reset();
  ASSERT_EQ(mkdir(at("joblib").c_str(), 0700), 0);
  make("joblib/b").reset();
  auto held = make("c");
  const auto below = directory_->open_below("joblib");
  ASSERT_TRUE(below);
  const std::vector<ShmFile> files = {{&*directory_, "a", entry("a").identity},
                                      {&*directory_, "joblib/b", below->list().entries.at(0).identity},
                                      {&*directory_, "c", entry("c").identity}};
  auto results = unlink_unused_together(files);
  ASSERT_EQ(results.size(), 3U);
  for (const auto& result : results) EXPECT_EQ(result.status, ShmStatus::in_use);
  EXPECT_THAT(results[0].detail, ::testing::HasSubstr("together with c"));
  for (const char* name : {"a", "joblib/b", "c"}) EXPECT_TRUE(exists(name)) << name;
  EXPECT_EQ(count(), 3U);
  held.reset();
  ASSERT_EQ(unlink(at("a").c_str()), 0);  // what is gone keeps nobody
  results = unlink_unused_together(files);
  EXPECT_EQ(results[0].status, ShmStatus::already_gone);
  EXPECT_EQ(results[1].status, ShmStatus::removed);
  EXPECT_EQ(results[2].status, ShmStatus::removed);
  EXPECT_EQ(count(), 1U);
  EXPECT_TRUE(unlink_unused_together({}).empty());
}

/// The last of a set cannot be renamed: those before it are by then, and get their names back.
TEST_F(ShmFilesTest, ASetThatIsBrokenOffHasItsNamesBack) {
  const LeaseBreaksIgnored guard;
  make("a").reset();
  make("b").reset();
  const std::vector<ShmFile> files = {{&*directory_, "a", entry("a").identity},
                                      {&*directory_, "b", entry("b").identity}};
  const std::string taken = ".vacate-" + std::to_string(getpid()) + "-" + std::to_string(files[1].expected.inode);
  make(taken).reset();
  for (const auto& result : unlink_unused_together(files)) EXPECT_NE(result.status, ShmStatus::removed);
  for (const std::string& name : {std::string("a"), std::string("b"), taken}) EXPECT_TRUE(exists(name)) << name;
  EXPECT_EQ(count(), 3U);
}

/// Needs root: a mount namespace of this test's own thread, in a child.
TEST_F(ShmFilesTest, EntersNothingThatIsMountedBelow) {
  ASSERT_EQ(mkdir(at("joblib").c_str(), 0700), 0);
  make("file").reset();
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0) _exit(77);
    if (mount("x", at("joblib").c_str(), "tmpfs", 0, nullptr) != 0) _exit(77);
    if (mount("/etc/passwd", at("file").c_str(), "", MS_BIND, nullptr) != 0) _exit(77);
    const auto inside = ShmDirectory::open(path_);  // by a descriptor from outside the mounts are not met
    if (!inside) _exit(5);
    const auto listing = inside->list();
    for (const auto& each : listing.entries)
      if (!each.mount_point) _exit(1);
    if (!listing.complete || listing.entries.size() != 2) _exit(2);
    const auto below = inside->open_below("joblib");
    if (below || below.error().code != ErrorCode::refused) _exit(3);
    const auto seen = ShmDirectory::device_of(at("joblib"));
    if (!seen || ShmDirectory::open(path_, *seen) || !ShmDirectory::open(at("joblib"), *seen)) _exit(4);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespace may be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ShmFilesTest, ABrokenLeaseEndsNobodyAndTheSignalIsAsBefore) {
  struct sigaction before {
  }, after{};
  ASSERT_EQ(sigaction(SIGIO, nullptr, &before), 0);
  {
    const LeaseBreaksIgnored guard;
    ASSERT_EQ(raise(SIGIO), 0);
  }
  ASSERT_EQ(sigaction(SIGIO, nullptr, &after), 0);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace vacate
