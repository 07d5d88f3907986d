// SPDX-License-Identifier: Apache-2.0
#include "os/trusted_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace vacate {
namespace {

class TrustedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "trusted-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/policy.toml";
    write("text");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) const {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), 0644);
  }
  [[nodiscard]] Result<std::string> read(TrustedOwner owner = TrustedOwner::root_or_caller) const {
    return read_trusted_file(path_, owner);
  }
  /// The message of a refusal; empty for anything else.
  [[nodiscard]] std::string refusal(TrustedOwner owner = TrustedOwner::root_or_caller) const {
    const auto result = read(owner);
    return !result && result.error().code == ErrorCode::refused ? result.error().message : "";
  }

  std::string folder_, path_;
};

TEST_F(TrustedFile, IsReadWhole) {
  write(std::string(kLargestTrustedFile, 'x'));
  EXPECT_EQ(read()->size(), kLargestTrustedFile);
}

TEST_F(TrustedFile, AbsentIsGone) {
  ::unlink(path_.c_str());
  EXPECT_EQ(read().error().code, ErrorCode::gone);
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(read().error().code, ErrorCode::gone);
}

TEST_F(TrustedFile, NobodyElseMayHaveWrittenIt) {
  for (const mode_t mode : {0664, 0646, 0666}) {
    ::chmod(path_.c_str(), mode);
    EXPECT_NE(refusal().find("written by others"), std::string::npos) << mode;
    EXPECT_NE(refusal().find(path_), std::string::npos);
  }
}

TEST_F(TrustedFile, NobodyElseMayReplaceIt) {
  ::chmod(folder_.c_str(), 0777);
  EXPECT_NE(refusal().find("written by others"), std::string::npos);
  ::unlink(path_.c_str());
  EXPECT_NE(refusal(), "") << "somebody may have removed it";
  write("text");
  ::chmod(folder_.c_str(), 01777);
  EXPECT_EQ(*read(), "text") << "sticky: nobody can replace another's file";
}

TEST_F(TrustedFile, HasTheRightOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal().find("has to belong to root"), std::string::npos);
  ASSERT_EQ(::chown(path_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_NE(refusal(TrustedOwner::root).find("has to belong to root"), std::string::npos) << "the directory";
}

TEST_F(TrustedFile, NoLinksPipesSocketsFoldersNorLargeOnes) {
  write(std::string(kLargestTrustedFile + 1, 'x'));
  EXPECT_NE(refusal().find("larger"), std::string::npos);
  const auto target = folder_ + "/target";
  std::filesystem::rename(path_, target);
  ASSERT_EQ(::symlink(target.c_str(), path_.c_str()), 0);
  EXPECT_NE(refusal().find("symbolic link"), std::string::npos);
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos) << "and it does not wait for a writer";
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkdir(path_.c_str(), 0755), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos);
  ::rmdir(path_.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path_.size(), sizeof address.sun_path);
  path_.copy(address.sun_path, path_.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(refusal().find("no regular file"), std::string::npos);
  ::close(socket);
}

TEST(TrustedFileNames, ThatAreNone) {
  for (const std::string path : {"", "/", "/tmp/", ".", "/tmp/.."})
    EXPECT_EQ(read_trusted_file(path, TrustedOwner::root).error().code, ErrorCode::refused) << path;
  EXPECT_EQ(read_trusted_file("/proc/version/x", TrustedOwner::root).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace vacate
