// SPDX-License-Identifier: Apache-2.0
// The futex system call. No timing of its own: deadlines are points on CLOCK_MONOTONIC, as steady_clock's are.
#include "lab/actor/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace lab {

void futex_wait(const FutexWord& word, std::uint32_t seen, vacate::Deadline deadline) noexcept {
  timespec until{};
  const timespec* timeout = nullptr;
  if (deadline.when() != vacate::Deadline::Clock::time_point::max()) {
    const auto since = deadline.when().time_since_epoch();
    const auto whole = std::chrono::floor<std::chrono::seconds>(since);
    until.tv_sec = whole.count();
    until.tv_nsec = std::chrono::nanoseconds(since - whole).count();
    timeout = &until;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_bump(FutexWord& word) noexcept {
  word.fetch_add(1);
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lab
