// SPDX-License-Identifier: Apache-2.0
#include "os/append_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "os/test_mounts.h"

namespace vacate {
namespace {

using ::testing::HasSubstr;

class AppendFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/vacate-append-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/record.jsonl";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void put(std::string_view text) const { std::ofstream(path_) << text; }
  void expect_refusal(std::string_view why) const {
    const auto file = AppendFile::open(path_);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::refused);
    EXPECT_THAT(file.error().message, HasSubstr(why));
  }

  std::string folder_, path_;
};

TEST_F(AppendFileTest, MakesItForTheOwnerAloneAndOnlyGrowsIt) {
  {
    auto file = AppendFile::open(path_);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->append("one"));
    EXPECT_TRUE(file->sync());
  }
  auto again = AppendFile::open(path_);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->append("two"));
  EXPECT_EQ(content(), "one\ntwo\n");
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(AppendFileTest, ATornLineStaysALineOfItsOwn) {
  put("whole\nto");
  auto file = AppendFile::open(path_);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->append("next"));
  EXPECT_EQ(content(), "whole\nto\nnext\n");
  std::ofstream(path_, std::ios::app) << "again to";  // somebody else, between two lines of ours
  EXPECT_TRUE(file->append("last"));
  EXPECT_EQ(content(), "whole\nto\nnext\nagain to\nlast\n");
}

TEST_F(AppendFileTest, TakesNoFileThatSomebodyElseMayHavePlanted) {
  const std::string other = folder_ + "/other";
  std::ofstream(other) << "precious\n";
  ASSERT_EQ(symlink(other.c_str(), path_.c_str()), 0);
  expect_refusal("is a symbolic link");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(link(other.c_str(), path_.c_str()), 0);
  expect_refusal("another name");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  expect_refusal("no regular file");
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  expect_refusal("no regular file");
  ASSERT_EQ(rmdir(path_.c_str()), 0);
  put("");
  ASSERT_EQ(chmod(path_.c_str(), 0620), 0);
  expect_refusal("written by others");
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  expect_refusal("everybody");
  if (geteuid() == 0) {
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
    expect_refusal("is not root's");
    ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
    expect_refusal("is not root's");
  }
  EXPECT_EQ(std::filesystem::file_size(other), 9U);
}

TEST_F(AppendFileTest, TwoWritersKeepWholeLines) {
  static constexpr int kLines = 2000;
  const auto write_lines = [&](char letter) {
    auto file = AppendFile::open(path_);
    for (int i = 0; file && i < kLines; ++i)
      if (!file->append(std::string(300, letter))) return 1;
    return file ? 0 : 1;
  };
  const pid_t child = fork();
  if (child == 0) _exit(write_lines('a'));
  EXPECT_EQ(write_lines('b'), 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  int whole = 0;
  const std::string text = content();
  for (const auto line : split(text, '\n')) {
    if (line.empty()) continue;
    EXPECT_EQ(line, std::string(300, line.front()));
    ++whole;
  }
  EXPECT_EQ(whole, 2 * kLines);
}

TEST_F(AppendFileTest, ALimitOfTheCallersIsAnErrorAndNoEnd) {
  auto file = AppendFile::open(path_);
  ASSERT_TRUE(file);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{4, 4};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(file->append("too long for it") ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AppendFileTest, AFullDiskIsSaidAndTheNextLineIsWhole) {
  testing::in_mount_namespace([&] { return mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=16k,mode=755") == 0; },
                              [&] {
                                auto file = AppendFile::open(path_);
                                ASSERT_TRUE(file);
                                std::ofstream(folder_ + "/ballast") << std::string(8192, 'x');
                                Result<void> written;
                                for (int i = 0; i < 100 && written; ++i) written = file->append(std::string(1000, 'a'));
                                ASSERT_FALSE(written);
                                EXPECT_THAT(written.error().message, HasSubstr("No space left"));
                                std::filesystem::remove(folder_ + "/ballast");
                                ASSERT_TRUE(file->append("next"));
                                EXPECT_TRUE(content().ends_with("a\nnext\n"));
                              });
}

TEST_F(AppendFileTest, TheTailBeginsWithALine) {
  put("first line\nsecond line\nlast");
  const auto all = read_tail(path_, 1000);
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->beginning);
  EXPECT_EQ(all->text, "first line\nsecond line\nlast");
  const auto some = read_tail(path_, 12);
  ASSERT_TRUE(some);
  EXPECT_FALSE(some->beginning);
  EXPECT_EQ(some->text, "last");
  EXPECT_EQ(read_tail(folder_ + "/none", 10).error().code, ErrorCode::gone);
}

}  // namespace
}  // namespace vacate
