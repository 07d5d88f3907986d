// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: values taken off the fuzzer's bytes, and laws whose breach ends the run as a crash does.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/text.h"

namespace vacate::fuzz {

/// A law that does not hold is a finding like a crash: the fuzzer keeps the input.
inline void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Is `part` a view of the bytes of `whole`, and not of something freed? An empty one may be anywhere.
inline bool is_inside(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

/// Does `whole` hold these bytes anywhere?
inline bool contains(std::string_view whole, std::string_view part) {
  return whole.find(part) != std::string_view::npos;
}

inline constexpr std::int64_t kPidLimit = 1 << 22;
inline bool is_pid_or_zero(std::int64_t pid) { return pid >= 0 && pid <= kPidLimit; }

/// Takes values off the front of the fuzzer's bytes; zeros and empty texts when they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(as_text(data, size)) {}

  template <class T>
  T number() {
    T value{};
    const auto bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  /// 0 up to, and without, `limit`.
  unsigned below(unsigned limit) { return number<std::uint16_t>() % limit; }
  bool flag() { return (number<std::uint8_t>() & 1U) != 0; }
  std::string_view text(std::size_t longest) { return take(number<std::uint8_t>() % (longest + 1)); }
  std::string_view take(std::size_t size) {
    const auto bytes = rest_.substr(0, size);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view rest() { return take(rest_.size()); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

/// One line of valid UTF-8 without control characters, judged without the code under test: shortest forms only, no
/// surrogates, nothing past U+10FFFF.
inline bool is_one_clean_line(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead < 0x20 || lead == 0x7F || (lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80) return false;
    }
    if (lead == 0xC2 && byte(i + 1) < 0xA0) return false;                                            // C1 controls
    if ((lead == 0xE0 && byte(i + 1) < 0xA0) || (lead == 0xED && byte(i + 1) > 0x9F)) return false;  // long, surrogate
    if ((lead == 0xF0 && byte(i + 1) < 0x90) || (lead == 0xF4 && byte(i + 1) > 0x8F)) return false;
    const unsigned last = byte(i + length - 1);  // of U+20xx: line ends, bidi controls, what has no width
    if (lead == 0xE2 && byte(i + 1) == 0x80 && ((last >= 0x8B && last <= 0x8F) || (last >= 0xA8 && last <= 0xAE)))
      return false;
    if (lead == 0xE2 && byte(i + 1) == 0x81 && last >= 0xA0 && last <= 0xAF) return false;
    i += length;
  }
  return true;
}

}  // namespace vacate::fuzz
