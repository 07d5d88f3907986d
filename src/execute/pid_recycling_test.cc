// SPDX-License-Identifier: Apache-2.0
// Pids that are given again between every two stages, in a pid namespace of the test's own: whoever got the number gets
// no signal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <string>

#include "execute/live_executor.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kNumber = 4711;
constexpr int kNotHere = 77;

/// The first process of a pid namespace with its own /proc runs `check`; its failures are the test's.
void in_pid_namespace(const std::function<void()>& check) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root for a pid namespace";
  const pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(kNotHere);
    const pid_t first = fork();
    if (first == 0) {
      const bool apart = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("proc", "/proc", "proc", 0, nullptr) == 0;
      if (!apart || access("/proc/sys/kernel/ns_last_pid", W_OK) != 0) _exit(kNotHere);
      check();
      std::cout << std::flush;
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotHere) GTEST_SKIP() << "no pid namespace with ns_last_pid here";
  EXPECT_EQ(status, 0);
}

enum class Obedience { obeys, ignores };

/// Starts a process with the number, which has to be free: ready when this returns.
void start(Obedience manner) {
  const std::string before = std::to_string(kNumber - 1);
  const int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(write(file, before.data(), before.size()), static_cast<ssize_t>(before.size()));
  close(file);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    std::signal(SIGTERM, manner == Obedience::ignores ? SIG_IGN : SIG_DFL);
    close(ready[0]);
    close(ready[1]);
    for (;;) pause();
  }
  ASSERT_EQ(pid, kNumber);
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 0);
  close(ready[0]);
}

/// The process with the number ends, and a bystander gets it. Any signal would end that.
void recycle() {
  const auto victim = ProcessRef::open(kNumber);
  ASSERT_TRUE(victim && victim->send_signal(SIGKILL));
  ASSERT_EQ(waitpid(kNumber, nullptr, 0), kNumber);
  start(Obedience::obeys);
}

bool bystander_lives() { return waitpid(kNumber, nullptr, WNOHANG) == 0; }

/// Does something each time the executor says how far it is: after its signals and before its wait.
class Meddler final : public ExecutionObserver {
 public:
  explicit Meddler(std::function<void()> once) : once_(std::move(once)) {}
  void on_execution(const ExecutionProgress&) override {
    if (once_) std::exchange(once_, nullptr)();
  }

 private:
  std::function<void()> once_;
};

struct Recycling {
  PinSet pins;
  Plan plan;
  Snapshot seen;

  explicit Recycling(ProcessKey key) {
    Step step;
    step.n = 1;
    step.key = key;
    plan.steps.push_back(step);
    Process process;
    process.key = key;
    seen.processes.push_back(process);
  }
  StepResult execute(std::function<void()> meddle = nullptr) {
    Meddler meddler(std::move(meddle));
    NoActionLog log;
    LiveExecutor executor(
        pins, [](const ProcessKey&) { return true; }, {Escalation::kill_after_grace, 200ms, 200ms}, meddler, log, -1);
    return executor.execute(plan, seen, Deadline::after(20s)).at(0);
  }
};

ProcessKey key_of_number() {
  const auto ref = ProcessRef::open(kNumber);
  EXPECT_TRUE(ref);
  return ref ? ref->key() : ProcessKey{};
}

/// Start times count in ticks: again until the newcomer's is another, as it is unless pids go round within 10 ms.
void recycle_to_another_key(const ProcessKey& seen) {
  do recycle();
  while (key_of_number() == seen);
}

TEST(PidRecycling, BetweenTheSightAndThePin) {
  in_pid_namespace([] {
    start(Obedience::obeys);
    Recycling run(key_of_number());
    recycle_to_another_key(run.plan.steps[0].key);
    ASSERT_TRUE(run.pins.pin(kNumber));
    const auto result = run.execute();
    EXPECT_EQ(result.status, StepStatus::identity_changed);
    EXPECT_TRUE(result.signals.empty());
    EXPECT_TRUE(bystander_lives());
  });
}

TEST(PidRecycling, BetweenThePlanAndAnExecutorWithoutPins) {
  in_pid_namespace([] {
    start(Obedience::obeys);
    Recycling run(key_of_number());
    recycle_to_another_key(run.plan.steps[0].key);
    const auto result = run.execute();
    EXPECT_EQ(result.status, StepStatus::identity_changed);
    EXPECT_TRUE(result.signals.empty());
    EXPECT_TRUE(bystander_lives());
  });
}

TEST(PidRecycling, BetweenThePinAndTheProof) {
  in_pid_namespace([] {
    start(Obedience::obeys);
    Recycling run(key_of_number());
    ASSERT_TRUE(run.pins.pin(kNumber));
    recycle();
    const auto* pinned = run.pins.find(run.plan.steps[0].key);
    ASSERT_NE(pinned, nullptr);
    EXPECT_FALSE(pinned->prove_alive());
    EXPECT_FALSE(pinned->runs_another_program()) << "it is not the newcomer's program that is asked about";
    EXPECT_FALSE(pinned->send_signal(SIGTERM));
    EXPECT_TRUE(bystander_lives());
  });
}

TEST(PidRecycling, BetweenTheProofAndTheFirstSignal) {
  in_pid_namespace([] {
    start(Obedience::obeys);
    Recycling run(key_of_number());
    ASSERT_TRUE(run.pins.pin(kNumber));
    recycle();
    const auto result = run.execute();
    EXPECT_EQ(result.status, StepStatus::already_gone);
    EXPECT_TRUE(result.signals.empty());
    EXPECT_TRUE(bystander_lives());
  });
}

TEST(PidRecycling, BetweenTermAndKill) {
  in_pid_namespace([] {
    start(Obedience::ignores);
    Recycling run(key_of_number());
    ASSERT_TRUE(run.pins.pin(kNumber));
    const auto result = run.execute(recycle);
    EXPECT_EQ(result.status, StepStatus::gone);
    EXPECT_EQ(result.signals, std::vector<std::string>{"TERM"});
    EXPECT_TRUE(bystander_lives());
  });
}

}  // namespace
}  // namespace vacate
