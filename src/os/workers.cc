// SPDX-License-Identifier: Apache-2.0
#include "os/workers.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace vacate {
namespace {

constexpr unsigned kMostWorkers = 4;
constexpr std::size_t kStackSize = std::size_t{256} << 10U;

void* run_one(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return nullptr;
}

}  // namespace

unsigned workers_for(std::size_t pieces) noexcept {
  cpu_set_t cores;
  const int usable = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  const auto most = std::min<std::size_t>(pieces, kMostWorkers);
  return static_cast<unsigned>(std::clamp<std::size_t>(most, 1, static_cast<std::size_t>(std::max(usable, 1))));
}

void run_on_workers(unsigned count, const std::function<void()>& work) {
  std::array<pthread_t, kMostWorkers> threads;
  std::size_t started = 0;
  pthread_attr_t attributes;
  if (count > 1 && pthread_attr_init(&attributes) == 0) {
    (void)pthread_attr_setstacksize(&attributes, kStackSize);
    // A thread begins with the mask of who starts it: handlers run on the caller's, which waits for some of them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const std::size_t wanted = std::min<std::size_t>(count, kMostWorkers) - 1;
    while (started < wanted &&
           pthread_create(&threads[started], &attributes, run_one, const_cast<std::function<void()>*>(&work)) == 0)
      ++started;
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
    (void)pthread_attr_destroy(&attributes);
  }
  work();
  for (std::size_t i = 0; i < started; ++i) (void)pthread_join(threads[i], nullptr);
}

}  // namespace vacate
