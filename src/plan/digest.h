// SPDX-License-Identifier: Apache-2.0
// The id of a plan: 16 hex digits over everything in it, so that two plans of one id are the same plan for people. Not
// meant to withstand anybody who wants two that differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace vacate {

/// FNV-1a of 64 bits.
class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) mix(static_cast<unsigned char>(c));
    mix(0);  // so that "ab","c" is not "a","bc"
  }
  void add(std::uint64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8) mix(static_cast<unsigned char>(number >> shift));
  }
  [[nodiscard]] std::string id() const { return fmt::format("{:016x}", value_); }

 private:
  void mix(unsigned char byte) {
    value_ ^= byte;
    value_ *= 0x100000001b3U;
  }
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace vacate
