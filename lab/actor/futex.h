// SPDX-License-Identifier: Apache-2.0
// Waiting for a word in shared memory to change, across processes. The only way in which the machine and its actors
// talk, because a futex leaves no descriptor behind that the product could see.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace lab {

using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4);

/// Returns when `word` is no longer `seen`, at the deadline, or early (a signal): the caller looks again.
void futex_wait(const FutexWord& word, std::uint32_t seen, vacate::Deadline deadline) noexcept;
/// Adds one and wakes everybody who waits. May be called from a signal handler.
void futex_bump(FutexWord& word) noexcept;

}  // namespace lab
