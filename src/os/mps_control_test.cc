// SPDX-License-Identifier: Apache-2.0
#include "os/mps_control.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

namespace vacate {
namespace {

using namespace std::string_literals;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(MpsPipeDirectory, IsWhatTheDaemonsEnvironmentSays) {
  EXPECT_EQ(parse_pipe_directory("PATH=/bin\0CUDA_MPS_PIPE_DIRECTORY=/run/mps\0HOME=/root\0"s), "/run/mps");
  EXPECT_EQ(parse_pipe_directory("PATH=/bin\0"s), "/tmp/nvidia-mps");
  EXPECT_EQ(parse_pipe_directory("XCUDA_MPS_PIPE_DIRECTORY=/run/mps\0CUDA_MPS_PIPE_DIRECTORY=\0"s), "/tmp/nvidia-mps");
  EXPECT_EQ(parse_pipe_directory(""), "/tmp/nvidia-mps");
}

TEST(MpsAnswer, IsAListOfProcessesOrNothing) {
  EXPECT_THAT(parse_pid_lines("4711\n  12\n12\n\n"), Optional(ElementsAre(12, 4711)));
  EXPECT_THAT(parse_pid_lines(""), Optional(ElementsAre()));
  for (const char* bad : {"4711 4712\n", "Server not found\n", "-1\n", "0\n", "4194305\n", "99999999999999999999\n",
                          "12\nCannot find MPS control daemon process\n"})
    EXPECT_EQ(parse_pid_lines(bad), std::nullopt) << bad;
}

class MpsFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: whose a folder is gets changed";
    std::string pattern = "/tmp/mps-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    pipe_ = folder_ + "/pipe";
    std::filesystem::create_directory(pipe_);
    set(folder_, 0, 0755);
    set(pipe_, 0, 0755);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static void set(const std::string& path, uid_t owner, mode_t mode) {
    ASSERT_EQ(chown(path.c_str(), owner, 0), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  [[nodiscard]] std::string problem(uid_t uid = 0) const {
    const auto checked = check_pipe_directory(pipe_, uid);
    return checked ? "" : checked.error().message;
  }

  std::string folder_, pipe_;
};

TEST_F(MpsFolder, OfRootsInAStickyFolderIsTrusted) {
  EXPECT_EQ(problem(), "");
  set(folder_, 0, 01777);
  EXPECT_EQ(problem(), "");
}

TEST_F(MpsFolder, ThatOthersCanWriteToIsNot) {
  set(pipe_, 0, 0777);
  EXPECT_EQ(problem(), "others can write to " + pipe_);
  set(pipe_, 0, 01777);  // sticky or not: a socket can be put there before the daemon's
  EXPECT_EQ(problem(), "others can write to " + pipe_);
  set(pipe_, 0, 0755);
  set(folder_, 0, 0775);
  EXPECT_EQ(problem(), "others can write to " + folder_);
}

TEST_F(MpsFolder, IsTheDaemonsUsersOrRoots) {
  set(pipe_, 1001, 0755);
  EXPECT_EQ(problem(1001), "");
  EXPECT_THAT(problem(0), HasSubstr("neither root's"));
  EXPECT_THAT(problem(1002), HasSubstr("neither root's"));
}

TEST_F(MpsFolder, IsNoLinkAndHasNoWayBack) {
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink(pipe_, link);
  EXPECT_FALSE(check_pipe_directory(link, 0));
  EXPECT_FALSE(check_pipe_directory(folder_ + "/pipe/../pipe", 0));
  EXPECT_FALSE(check_pipe_directory("tmp", 0));
  const auto missing = check_pipe_directory(folder_ + "/none", 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::gone);
}

}  // namespace
}  // namespace vacate
