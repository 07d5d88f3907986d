// SPDX-License-Identifier: Apache-2.0
#include "os/private_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace vacate {
namespace {

class PrivateFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "vacate-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(PrivateFile, IsWrittenForItsOwnerAloneAndReplacesHisOwn) {
  ASSERT_TRUE(write_private_file(at("a"), "first"));
  ASSERT_EQ(chmod(at("a").c_str(), 0644), 0);
  ASSERT_TRUE(write_private_file(at("a"), std::string("sec\0nd", 6)));
  EXPECT_EQ(read_regular_file(at("a"), 100).value_or(""), std::string("sec\0nd", 6));
  struct stat there {};
  ASSERT_EQ(stat(at("a").c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 07777U, 0600U);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(PrivateFile, NeverGoesThroughALinkNorOverAnythingElse) {
  ASSERT_TRUE(write_private_file(at("target"), "precious"));
  std::filesystem::create_symlink(at("target"), at("link"));
  std::filesystem::create_symlink(at("nowhere"), at("dangling"));
  std::filesystem::create_directory(at("folder"));
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "folder", "pipe"}) {
    const auto written = write_private_file(at(name), "x");
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().code, ErrorCode::refused) << name;
  }
  EXPECT_EQ(read_regular_file(at("target"), 100).value_or(""), "precious");
  EXPECT_FALSE(std::filesystem::exists(at("nowhere")));
  EXPECT_EQ(entries(), 5U);
}

TEST_F(PrivateFile, SomebodyElsesFileStays) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(write_private_file(at("theirs"), "precious"));
  ASSERT_EQ(chown(at("theirs").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(write_private_file(at("theirs"), "x"));
  EXPECT_EQ(read_regular_file(at("theirs"), 100).value_or(""), "precious");
}

TEST_F(PrivateFile, WhatCannotBeWrittenLeavesNothingBehind) {
  EXPECT_FALSE(write_private_file(at("no/such/folder"), "x"));
  EXPECT_FALSE(write_private_file("", "x"));
  EXPECT_EQ(entries(), 0U);
}

TEST_F(PrivateFile, OnlyRegularFilesOfABoundedSizeAreRead) {
  ASSERT_TRUE(write_private_file(at("a"), std::string(101, 'x')));
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_regular_file(at("a"), 100));
  EXPECT_TRUE(read_regular_file(at("a"), 101));
  for (const auto& path : {at("pipe"), at("none"), folder_, std::string("/dev/zero")}) {
    const auto read = read_regular_file(path, 100);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().code, ErrorCode::malformed);
  }
}

}  // namespace
}  // namespace vacate
