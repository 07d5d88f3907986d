// SPDX-License-Identifier: Apache-2.0
// An amount of memory. A type of its own so that MiB and bytes cannot be mixed up.
#pragma once

#include <compare>
#include <cstdint>

namespace vacate {

/// An amount of memory in bytes. Differences stop at zero: there is no negative memory.
struct Bytes {
  std::uint64_t count = 0;

  auto operator<=>(const Bytes&) const = default;

  constexpr Bytes& operator+=(Bytes other) noexcept {
    count += other.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept { return {a.count > b.count ? a.count - b.count : 0}; }

  /// Whole mebibytes, rounded down, as nvidia-smi prints them.
  [[nodiscard]] constexpr std::uint64_t mib() const noexcept { return count >> 20U; }
};

[[nodiscard]] constexpr Bytes mebibytes(std::uint64_t n) noexcept { return {n << 20U}; }
[[nodiscard]] constexpr Bytes gibibytes(std::uint64_t n) noexcept { return {n << 30U}; }

}  // namespace vacate
