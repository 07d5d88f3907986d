// SPDX-License-Identifier: Apache-2.0
// ProcessRef on real processes: alive, dead, not reaped yet.
#include "os/process_ref.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "os/test_dialogue.h"

namespace vacate {
namespace {

pid_t fork_sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  return pid;
}

bool wait_until_exited(const ProcessRef& ref) {
  pollfd wait{ref.descriptor(), POLLIN, 0};
  return poll(&wait, 1, 5000) == 1;
}

/// Runs /bin/sh twice, one after the other: the same file, another program all the same.
TEST(ProcessRef, TellsThatExecCameBetween) {
  const testing::Dialogue shells([] {
    execl("/bin/sh", "sh", "-c", "read a; echo $a; read a; exec /bin/sh -c 'echo $1; read a' sh $a", nullptr);
  });
  const auto say = [&] { return shells.say("x\n") && shells.hear(2) == "x\n"; };
  ASSERT_TRUE(say());  // the first shell runs
  const auto first = ProcessRef::open(shells.pid());
  ASSERT_TRUE(first);
  ASSERT_TRUE(say());  // the second does
  EXPECT_TRUE(first->runs_another_program());
  const auto second = ProcessRef::open(shells.pid());
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->runs_another_program());
  ASSERT_TRUE(second->send_signal(SIGKILL));
  ASSERT_TRUE(wait_until_exited(*second));
  EXPECT_FALSE(second->runs_another_program()) << "whoever ended runs nothing";
  waitpid(shells.pid(), nullptr, 0);
}

TEST(ProcessRef, PinsSignalsAndSeesTheEnd) {
  const pid_t pid = fork_sleeper();
  auto ref = ProcessRef::open(pid);
  ASSERT_TRUE(ref) << ref.error().message;
  EXPECT_EQ(ref->key().pid, pid);
  EXPECT_GT(ref->key().start_ticks, 0U);
  EXPECT_GT(ref->key().pid_namespace, 0U);
  EXPECT_FALSE(ref->exited());
  EXPECT_TRUE(ref->prove_alive());
  EXPECT_TRUE(ref->send_signal(SIGTERM));
  ASSERT_TRUE(wait_until_exited(*ref));
  // A zombie takes signals, yet it has ended.
  EXPECT_TRUE(ref->exited());
  EXPECT_EQ(ref->prove_alive().error().code, ErrorCode::gone);
  EXPECT_EQ(ref->send_signal(SIGTERM).error().code, ErrorCode::gone);
  EXPECT_FALSE(ProcessRef::open(pid));
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(ref->prove_alive().error().code, ErrorCode::gone);
  EXPECT_EQ(ProcessRef::open(pid).error().code, ErrorCode::gone);
}

TEST(ProcessRef, RefusesAThreadThatLeadsNothing) {
  pid_t tid = 0;
  std::thread([&] {
    tid = gettid();
    const auto ref = ProcessRef::open(tid);
    EXPECT_FALSE(ref);
    if (!ref) {
      EXPECT_EQ(ref.error().code, ErrorCode::gone);
    }
  }).join();
}

TEST(ProcessRef, AZombieLeaderWithALiveThreadIsAlive) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::thread([&] {
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread alone, and without unwinding as pthread_exit does
  }
  close(ready[1]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  auto ref = ProcessRef::open(pid);
  ASSERT_TRUE(ref);
  EXPECT_FALSE(ref->exited());
  EXPECT_TRUE(ref->send_signal(SIGKILL));
  EXPECT_TRUE(wait_until_exited(*ref));
  waitpid(pid, nullptr, 0);
  close(ready[0]);
}

TEST(PinSet, KeepsOneEntryAProcessAndFindsByKey) {
  const pid_t pid = fork_sleeper();
  PinSet pins;
  const auto key = pins.pin(pid);
  ASSERT_TRUE(key);
  EXPECT_EQ(*pins.pin(pid), *key);
  EXPECT_EQ(pins.size(), 1U);
  ASSERT_NE(pins.find(*key), nullptr);
  auto other = *key;
  ++other.start_ticks;
  EXPECT_EQ(pins.find(other), nullptr);
  EXPECT_TRUE(pins.find(*key)->send_signal(SIGKILL));
  waitpid(pid, nullptr, 0);
  EXPECT_FALSE(pins.pin(pid));
}

}  // namespace
}  // namespace vacate
