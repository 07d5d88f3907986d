// SPDX-License-Identifier: Apache-2.0
#include "os/workers.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace vacate {
namespace {

using ::testing::Each;

TEST(Workers, AreAsManyAsThereIsWorkFor) {
  EXPECT_EQ(workers_for(0), 1U);
  EXPECT_EQ(workers_for(1), 1U);
  EXPECT_LE(workers_for(1000000), 4U);
}

TEST(Workers, KeepToTheCoresOfThisProcess) {
  std::thread([] {
    cpu_set_t all;
    cpu_set_t one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(workers_for(1000), 1U);
  }).join();
}

TEST(Workers, DoEveryPieceOnceAndAreDoneOnReturn) {
  for (const unsigned count : {0U, 1U, 2U, 4U, 9U}) {
    std::vector<int> done(5000, 0);
    std::atomic<std::size_t> next{0};
    std::atomic<unsigned> calls{0};
    run_on_workers(count, [&] {
      ++calls;
      for (std::size_t piece = next++; piece < done.size(); piece = next++) ++done[piece];
    });
    EXPECT_THAT(done, Each(1));
    EXPECT_GE(calls, 1U);
    EXPECT_LE(calls, 4U);
  }
}

// Handlers are for the caller's thread, which may be waiting for what they do.
TEST(Workers, TakeNoSignals) {
  const auto caller = pthread_self();
  std::atomic<int> open{0};
  run_on_workers(4, [&] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (pthread_equal(pthread_self(), caller) == 0 && sigismember(&blocked, SIGTERM) == 0) ++open;
  });
  EXPECT_EQ(open, 0);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

}  // namespace
}  // namespace vacate
