// SPDX-License-Identifier: Apache-2.0
// Both scans on processes that change what they have open all the time: whoever holds a stand-in for a GPU node at
// every moment is found every time, and nobody else is.
#include <sys/mount.h>
#include <sys/syscall.h>

#include <thread>

#include "scan_crowd.h"

namespace vacate {
namespace {

/// Its main thread lets another have its table and goes on with a copy, again and again.
void exchange_table_for_ever() {
  for (;;) {
    std::thread other([] { (void)sched_yield(); });
    (void)unshare(CLONE_FILES);
    other.join();
  }
}

TEST(RestlessProcesses, AreFoundWhenTheyExchangeTheirTable) {
  SKIP_WITHOUT_BPF();
  static constexpr int kKept = 700;
  Crowd crowd;
  const pid_t holder = crowd.add([](const auto& ready) {
    for (int n = 0; n < kKept; ++n) (void)open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)dup2(open("/dev/zero", O_RDWR | O_CLOEXEC), kKept + 1);
    ready();
    exchange_table_for_ever();
  });
  const auto row = fmt::format("hit {} {} {} ", holder, holder, kKept + 1);
  for (int round = 0; round < 100; ++round) {
    const auto seen = look(ScanMethod::bpf, crowd.pids());
    EXPECT_TRUE(has_row(seen, row)) << "round " << round;
    EXPECT_EQ(seen.use.used, ScanMethod::bpf) << seen.use.why;
  }
}

/// Its number is of a node at every moment, but never of one open file for long.
TEST(RestlessProcesses, AreFoundWhenTheyReplaceTheFileOfADescriptor) {
  SKIP_WITHOUT_BPF();
  static constexpr int kKept = 40;
  Crowd crowd;
  const pid_t holder = crowd.add([](const auto& ready) {
    (void)dup2(open("/dev/zero", O_RDWR | O_CLOEXEC), kKept);
    ready();
    for (;;) {
      const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
      (void)dup2(fd, kKept);
      (void)close(fd);
    }
  });
  const auto row = fmt::format("hit {} {} {} ", holder, holder, kKept);
  for (int round = 0; round < 150; ++round)
    for (const auto method : {ScanMethod::bpf, ScanMethod::procfs})
      EXPECT_TRUE(has_row(look(method, crowd.pids()), row))
          << "round " << round << (method == ScanMethod::bpf ? " by BPF" : " by /proc");
}

/// A number that is of a node that is only named, and then of another file that is open in earnest, in turn.
TEST(RestlessProcesses, AreNoHoldersWhenTheyOnlyNameANode) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  crowd.add([](const auto& ready) {
    for (int fd = 0; fd < 3; ++fd) (void)dup2(open("/etc/passwd", O_RDONLY | O_CLOEXEC), fd);  // no node of the test's
    ready();
    (void)close_range(3, ~0U, 0);
    for (;;)
      for (const int flags : {O_PATH, O_RDWR}) {
        for (int n = 0; n < 16; ++n) (void)open(flags == O_PATH ? "/dev/zero" : "/etc/passwd", flags);
        (void)close_range(3, ~0U, 0);
      }
  });
  // Of 200 looks one in seven was wrong before; that two questions fall into four wrong moments cannot be ruled out.
  for (const auto method : {ScanMethod::bpf, ScanMethod::procfs}) {
    int wrong = 0;
    for (int round = 0; round < 100; ++round) wrong += has_row(look(method, crowd.pids()), "hit ") ? 1 : 0;
    EXPECT_LE(wrong, 2) << (method == ScanMethod::bpf ? "by BPF" : "by /proc");
  }
}

/// Its table does not go into one report, so it is exchanged between two as well.
TEST(RestlessProcesses, AreNotFoundTwiceWhenTheyExchangeALargeTable) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  crowd.add([](const auto& ready) {
    open_many_ends();
    ready();
    exchange_table_for_ever();
  });
  const auto expected = look(ScanMethod::procfs, crowd.pids()).channel_ends;
  EXPECT_GT(expected, 12000U);
  for (int round = 0; round < 50; ++round)
    EXPECT_EQ(look(ScanMethod::bpf, crowd.pids()).channel_ends, expected) << "round " << round;
}

void set_next_pid(int pid) {
  const auto text = std::to_string(pid - 1);
  const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  (void)!write(fd, text.data(), text.size());
  (void)close(fd);
}

/// Numbers came round: the thread is walked past long before its process, in whose table the node is then. When the
/// walk comes to the process, the main thread has left that table. How many of twenty scans did not find the node?
int miss_inside() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 92;
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return 93;
  Crowd between;
  set_next_pid(2000);
  for (int n = 0; n < 4; ++n) between.add([](const auto&) { open_many_ends(); });
  int missed = 0;
  for (int round = 0; round < 20; ++round) {
    Crowd crowd;
    set_next_pid(3000);
    const pid_t holder = crowd.add([&](const auto& ready) {
      open_node();
      set_next_pid(1000);
      std::thread([] {
        for (;;) (void)pause();
      }).detach();
      ready();
      (void)usleep(static_cast<unsigned>(round) * 1000);
      if (round % 2 == 0) (void)syscall(SYS_exit, 0);
      (void)unshare(CLONE_FILES);
      (void)close_range(0, ~0U, 0);
    });
    missed += has_row(look(ScanMethod::bpf, crowd.pids()), fmt::format("hit {} ", holder)) ? 0 : 1;
  }
  return missed;
}

TEST(RestlessProcesses, AreFoundByAThreadWithALowerNumber) {
  SKIP_WITHOUT_BPF();
  EXPECT_EQ(run_in_pid_namespace(miss_inside), 0);
}

}  // namespace
}  // namespace vacate
