// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace vacate {

/// What a clock of the kernel says, in seconds; 0 where it has none of this name (clock_gettime(2)).
[[nodiscard]] inline double seconds_of(clockid_t clock) noexcept {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// When the machine was booted, in seconds since the epoch. Not btime of /proc/stat, which is in whole seconds
/// (facts.md 3.7).
[[nodiscard]] inline double boot_time() noexcept { return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME); }

}  // namespace vacate
