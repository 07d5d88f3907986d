// SPDX-License-Identifier: Apache-2.0
// How memory falls after the last reference (lab.md 2 `release`, facts.md 2.3), and callers that the driver does not
// let go.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "child.h"
#include "driver_under_test.h"
#include "waiting.h"

namespace lab {
namespace {

using ::testing::IsEmpty;
using vacate::UniqueFd;
using Milliseconds = std::chrono::milliseconds;
using TestClock = std::chrono::steady_clock;

class Release : public DriverUnderTest {
 protected:
  void SetUp() override { start(); }
};

TEST_F(Release, LateMemoryStaysThenFallsAtOnce) {
  UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 100, ListKind::compute, 300, 1), 0);
  const auto released = TestClock::now();
  ctl.reset();
  EXPECT_EQ(used_mib(0), kBaseline + 100);
  EXPECT_THAT(state().clients, IsEmpty()) << "past its last reference it is in no list";
  EXPECT_EQ(state().gpus[0].falling.mib(), 100U);
  ASSERT_TRUE(eventually([&] { return used_mib(0) != kBaseline + 100; }));
  EXPECT_EQ(used_mib(0), kBaseline);
  EXPECT_GE(TestClock::now() - released, Milliseconds(300));
}

TEST_F(Release, SteppedMemoryFallsInEqualParts) {
  UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 100, ListKind::compute, 600, 4), 0);
  const auto released = TestClock::now();
  ctl.reset();
  std::vector<std::uint64_t> seen;
  ASSERT_TRUE(eventually([&] {
    const std::uint64_t used = used_mib(0) - kBaseline;
    if (seen.empty() || seen.back() != used) seen.push_back(used);
    return used == 0;
  }));
  EXPECT_GE(TestClock::now() - released, Milliseconds(600));
  // A busy machine may miss a step but never sees another figure, nor one that rises.
  for (const std::uint64_t used : seen) EXPECT_EQ(used % 25, 0U) << used;
  EXPECT_TRUE(std::is_sorted(seen.rbegin(), seen.rend()));
  EXPECT_GE(seen.size(), 3U);
}

TEST_F(Release, NeverReleasedMemoryStays) {
  UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 100, ListKind::compute, -1, 1), 0);
  ctl.reset();
  ASSERT_TRUE(eventually([&] { return state().clients.empty(); }));
  EXPECT_FALSE(eventually([&] { return used_mib(0) != kBaseline + 100; }, Milliseconds(200)));
}

TEST_F(Release, EachAllocationHasItsOwnWay) {
  UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 100), 0);
  ASSERT_EQ(allocate(ctl.get(), 0, 7, ListKind::compute, -1, 1), 0);
  ctl.reset();
  EXPECT_TRUE(comes_to_use(0, kBaseline + 7));
}

TEST_F(Release, TimeOfTheLastReleaseIsKept) {
  EXPECT_EQ(state().gpus[0].last_release_ns, 0);
  const auto before = TestClock::now().time_since_epoch();
  make_client(0, 100).reset();
  ASSERT_TRUE(comes_to_use(0, kBaseline));
  const auto after = TestClock::now().time_since_epoch();
  EXPECT_GE(state().gpus[0].last_release_ns, std::chrono::nanoseconds(before).count());
  EXPECT_LE(state().gpus[0].last_release_ns, std::chrono::nanoseconds(after).count());
  EXPECT_EQ(state().gpus[1].last_release_ns, 0);
}

TEST_F(Release, MoreThanThereIsIsRefused) {
  UniqueFd ctl = open_ctl();
  EXPECT_EQ(allocate(ctl.get(), 0, 97887), ENOMEM);
  EXPECT_EQ(allocate(ctl.get(), 0, 97887 - kBaseline), 0);
  EXPECT_EQ(allocate(ctl.get(), 0, 1), ENOMEM);
  EXPECT_EQ(allocate(ctl.get(), 2, 1), EINVAL);
  EXPECT_EQ(allocate(ctl.get(), 1, 1, ListKind::compute, 0, 0), EINVAL);
}

TEST_F(Release, UnansweredCallSurvivesKillUntilTheDriverEnds) {
  UniqueFd ctl = make_client(0, 100);
  Child child([&](int say) {
    close(say);
    ioctl(ctl.get(), kNeverAnswered);
  });
  ctl.reset();
  ASSERT_TRUE(comes_to_hold(child, kNeverAnswered));
  child.signal(SIGKILL);
  EXPECT_FALSE(child.ends_within(200));
  EXPECT_TRUE(eventually([&] { return child.status("State") == "D"; }));
  EXPECT_EQ(used_mib(0), kBaseline + 100) << "one stuck caller does not make the driver deaf";
  server().stop();
  EXPECT_TRUE(child.ends_within(5000));
}

TEST_F(Release, StuckCallEndsSomeTimeAfterTheSignal) {
  UniqueFd ctl = make_client(0, 100);
  Child child([&](int say) {
    close(say);
    const DelayRequest request{200};
    ioctl(ctl.get(), kStuck, &request);
  });
  ctl.reset();
  ASSERT_TRUE(comes_to_hold(child, kStuck));
  EXPECT_FALSE(child.ends_within(250)) << "nothing falls due before the signal";
  child.signal(SIGKILL);
  EXPECT_FALSE(child.ends_within(100));
  EXPECT_TRUE(child.ends_within(5000));
  EXPECT_EQ(used_mib(0), kBaseline);
}

TEST_F(Release, LateFlushLeavesAnExitingProcessWithoutDescriptors) {
  UniqueFd ctl = make_client(0, 100);
  const DelayRequest request{500};
  ASSERT_EQ(ioctl(ctl.get(), kDelayFlush, &request), 0);
  Child child([](int) {});
  child.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return child.wait_channel() == "request_wait_answer"; }));
  EXPECT_FALSE(child.ends_within(0));
  const std::filesystem::path descriptors = "/proc/" + std::to_string(child.pid()) + "/fd";
  EXPECT_TRUE(std::filesystem::is_empty(descriptors)) << "facts.md 2.3";
  EXPECT_TRUE(child.ends_within(5000));
  EXPECT_EQ(used_mib(0), kBaseline + 100) << "FLUSH is not RELEASE: this process still holds it";
}

TEST_F(Release, LateExitIsOfOneProcessAndOfOneClose) {
  UniqueFd ctl = make_client(0, 100);
  Child plain([](int) {});
  Child late([&](int) {
    const DelayRequest request{500};
    if (ioctl(ctl.get(), kDelayExit, &request) != 0) _exit(1);
  });
  const UniqueFd copy(dup(ctl.get()));
  plain.signal(SIGKILL);
  EXPECT_TRUE(plain.ends_within(400)) << "another process with the same open file exits at once";
  late.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return late.wait_channel() == "request_wait_answer"; }));
  EXPECT_TRUE(std::filesystem::is_empty("/proc/" + std::to_string(late.pid()) + "/fd"));
  EXPECT_FALSE(late.ends_within(0));
  EXPECT_TRUE(late.ends_within(5000));
}

TEST_F(Release, LateExitCanBeTakenBack) {
  UniqueFd ctl = make_client(0, 100);
  Child child([&](int) {
    DelayRequest request{-1};
    if (ioctl(ctl.get(), kDelayExit, &request) != 0) _exit(1);
    request.after_ms = 0;
    if (ioctl(ctl.get(), kDelayExit, &request) != 0) _exit(1);
  });
  child.signal(SIGKILL);
  EXPECT_TRUE(child.ends_within(5000));
}

TEST_F(Release, StuckCallIsAnsweredWhenTheSameFileAsksForIt) {
  UniqueFd ctl = make_client(0, 100);
  const UniqueFd other = make_client(0, 100);
  Child child([&](int say) {
    close(say);
    const DelayRequest request{-1};
    ioctl(ctl.get(), kStuck, &request);
    _exit(0);
  });
  ASSERT_TRUE(comes_to_hold(child, kStuck));
  ASSERT_EQ(ioctl(other.get(), kAnswer), 0);
  EXPECT_FALSE(child.ends_within(100)) << "that was another file";
  ASSERT_EQ(ioctl(ctl.get(), kAnswer), 0);
  EXPECT_TRUE(child.ends_within(5000));
}

/// What a holder scan does, while the driver is deaf: it has to get its answer without the driver (facts.md 3.2).
TEST_F(Release, StatOfADescriptorDoesNotAskTheDriver) {
  const UniqueFd gpu = open_node("nvidia0");
  ASSERT_TRUE(gpu);
  ASSERT_EQ(syscall(SYS_pidfd_send_signal, server().pidfd(), SIGSTOP, nullptr, 0U), 0);
  siginfo_t stopped{};
  ASSERT_EQ(waitid(P_PIDFD, static_cast<id_t>(server().pidfd()), &stopped, WSTOPPED), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from_scanner(ends[0]);
  const UniqueFd answer(ends[1]);
  Child scanner([&](int say) {
    close(say);
    const std::string link = "/proc/self/fd/" + std::to_string(gpu.get());
    struct statx about {};
    const int result = statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &about);
    if (result == 0 && about.stx_ino != 0) static_cast<void>(!write(answer.get(), "+", 1));
  });
  pollfd answered = {from_scanner.get(), POLLIN, 0};
  EXPECT_EQ(poll(&answered, 1, 5000), 1);
  syscall(SYS_pidfd_send_signal, server().pidfd(), SIGCONT, nullptr, 0U);
}

TEST_F(Release, ServerKeepsNoDescriptorOfItsStarter) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  start();
  to.reset();
  pollfd closed = {from.get(), POLLIN, 0};
  EXPECT_EQ(poll(&closed, 1, 5000), 1);
}

TEST_F(Release, ServerDiesWithItsStarter) {
  server().stop();
  Child starter([&](int) { static const auto own = DriverServer::start(two_gpus(), directory()); });
  ASSERT_TRUE(read_driver_state(directory()));
  starter.end();
  EXPECT_TRUE(eventually([&] { return !read_driver_state(directory()); }));
  umount2(directory().c_str(), MNT_DETACH);
}

TEST_F(Release, NodesCanBeToldApart) {
  std::set<std::pair<dev_t, ino_t>> identities;
  for (const char* name : {"nvidiactl", "nvidia0", "nvidia1", "nvidia-uvm", "nvidia-uvm-tools"}) {
    struct stat about {};
    ASSERT_EQ(stat((directory() + "/" + name).c_str(), &about), 0) << name;
    EXPECT_TRUE(identities.emplace(about.st_dev, about.st_ino).second) << name;
    EXPECT_EQ(about.st_mode & 07777U, 0666U) << name;
  }
}

}  // namespace
}  // namespace lab
