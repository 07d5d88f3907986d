// SPDX-License-Identifier: Apache-2.0
// Parsers, and the real freezer of version 1 where this machine has one. That of version 2 is in the lab's machines.
#include "os/freezer.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/unique_fd.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FreezerPaths, AreThoseOfBothHierarchies) {
  const auto paths = parse_freezer_paths("7:cpu,freezer:/docker/a:b\n1:name=systemd:/x\n0::/system.slice/y.service\n");
  EXPECT_EQ(paths.v1, "/docker/a:b");
  EXPECT_EQ(paths.v2, "/system.slice/y.service");
  EXPECT_EQ(parse_freezer_paths(""), FreezerPaths{});
  EXPECT_EQ(parse_freezer_paths("freezer\n::\n:freezer\n3::/not-v2\n"), FreezerPaths{});
}

TEST(FreezerMounts, TakeWholeHierarchiesOnly) {
  const auto mounts = parse_freezer_mounts(
      "30 20 0:26 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer\n"
      "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "32 20 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "33 20 0:28 /part /mnt rw - cgroup2 cgroup2 rw\n"
      "noise\n - \n");
  EXPECT_EQ(mounts, (FreezerMounts{"/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"}));
}

TEST(Freezers, WriteNothingOutsideOfControlGroups) {
  const Freezers freezers({"/tmp", "/tmp"});
  const auto anybody = [](pid_t) { return true; };
  EXPECT_FALSE(freezers.thaw({"/x", Freezer::v1}, anybody));
  EXPECT_FALSE(freezers.thaw({"/x", Freezer::v2}, anybody));
  EXPECT_FALSE(freezers.frozen_group({"/x", "/y"}));
  EXPECT_FALSE(Freezers::read().thaw({"/../../tmp", Freezer::v1}, anybody));
  EXPECT_FALSE(Freezers::read().thaw({"/", Freezer::v1}, anybody));
}

void write_to(const std::string& path, const std::string& text) { std::ofstream(path) << text << std::flush; }

/// A group of the version 1 freezer with a child process in it, frozen.
class FrozenChild {
 public:
  FrozenChild() {
    std::ifstream table("/proc/self/mountinfo");
    const std::string text((std::istreambuf_iterator<char>(table)), {});
    const auto mount = parse_freezer_mounts(text).v1;
    if (mount.empty()) return;
    path_ = "/vacate-test-" + std::to_string(getpid());
    folder_ = mount + path_;
    if (mkdir(folder_.c_str(), 0755) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      alarm(60);
      for (;;) pause();
    }
    pidfd_.reset(open_pidfd(pid_));
    write_to(folder_ + "/cgroup.procs", std::to_string(pid_));
    write_to(folder_ + "/freezer.state", "FROZEN");
    is_frozen_ = pidfd_ && state() != "THAWED";
  }
  FrozenChild(const FrozenChild&) = delete;
  FrozenChild& operator=(const FrozenChild&) = delete;
  ~FrozenChild() {
    if (pid_ > 0) {
      write_to(folder_ + "/freezer.state", "THAWED");
      (void)signal_pidfd(pidfd_.get(), SIGKILL);
      (void)waitpid(pid_, nullptr, 0);
    }
    if (!folder_.empty()) (void)rmdir(folder_.c_str());
  }
  [[nodiscard]] bool is_frozen() const { return is_frozen_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] std::string state() const {
    std::ifstream file(folder_ + "/freezer.state");
    std::string word;
    file >> word;
    return word;
  }

 private:
  std::string path_, folder_;
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  bool is_frozen_ = false;
};

TEST(Freezers, FindAndThawAGroupOfVersion1) {
  FrozenChild child;
  if (!child.is_frozen()) GTEST_SKIP() << "no freezer of cgroup version 1 that may be used";
  const auto freezers = Freezers::read();
  const auto group = freezers.frozen_group({child.path(), std::nullopt});
  ASSERT_TRUE(group);
  EXPECT_EQ(group->path, child.path());
  EXPECT_EQ(group->freezer, Freezer::v1);
  EXPECT_THAT(group->members.value(), ElementsAre(child.pid()));

  // Not even KILL reaches it.
  ASSERT_EQ(signal_pidfd(child.pidfd(), SIGKILL), 0);
  pollfd end{child.pidfd(), POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 100), 0);

  const ThawTarget target{child.path(), Freezer::v1};
  const auto refused = freezers.thaw(target, [](pid_t) { return false; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(child.pid())));
  EXPECT_NE(child.state(), "THAWED");

  EXPECT_TRUE(freezers.thaw(target, [&](pid_t pid) { return pid == child.pid(); }));
  EXPECT_EQ(poll(&end, 1, 5000), 1);
}

}  // namespace
}  // namespace vacate
