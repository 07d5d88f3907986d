// SPDX-License-Identifier: Apache-2.0
// A point on CLOCK_MONOTONIC by which a wait has to end. Every wait of vacate has one.
#pragma once

#include <algorithm>
#include <chrono>

namespace vacate {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static Deadline after(Clock::duration wait) noexcept {
    const auto now = Clock::now();
    return Deadline(wait > Clock::time_point::max() - now ? Clock::time_point::max() : now + wait);
  }
  [[nodiscard]] static Deadline at(Clock::time_point when) noexcept { return Deadline(when); }
  [[nodiscard]] static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }
  [[nodiscard]] static Deadline earlier(Deadline a, Deadline b) noexcept { return a.when_ < b.when_ ? a : b; }

  [[nodiscard]] bool passed() const noexcept { return Clock::now() >= when_; }
  [[nodiscard]] Clock::time_point when() const noexcept { return when_; }
  /// What is left, never negative.
  [[nodiscard]] Clock::duration remaining() const noexcept {
    return std::max(Clock::duration::zero(),
                    when_ == Clock::time_point::max() ? Clock::duration::max() : when_ - Clock::now());
  }
  /// For poll(2): milliseconds left, rounded up so that a wait never ends early; -1 for never.
  [[nodiscard]] int poll_timeout_ms() const noexcept {
    if (when_ == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
    return static_cast<int>(std::min<long long>(left, 1'000'000'000));
  }

 private:
  explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
  Clock::time_point when_;
};

[[nodiscard]] inline double seconds_since(Deadline::Clock::time_point start) noexcept {
  return std::chrono::duration<double>(Deadline::Clock::now() - start).count();
}

}  // namespace vacate
