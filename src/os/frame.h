// SPDX-License-Identifier: Apache-2.0
// The byte form in which an expendable child answers: numbers in the machine's own order, strings with their length,
// frames with a length in front. Pure. The reader trusts nothing: past the end or on a bad length it fails for good and
// gives zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace vacate {

class FrameWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_ += value;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

class FrameReader {
 public:
  explicit FrameReader(std::string_view bytes) noexcept : rest_(bytes) {}

  template <class T>
  [[nodiscard]] T number() noexcept {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>);
    T value{};
    if (failed_ || rest_.size() < sizeof value) {
      failed_ = true;
      return T{};
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  [[nodiscard]] std::string_view text() noexcept {
    const auto length = number<std::uint32_t>();
    if (failed_ || rest_.size() < length) {
      failed_ = true;
      return {};
    }
    const auto value = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return value;
  }
  /// A count of things of at least `size` bytes each that are still to come: one that cannot be true fails.
  [[nodiscard]] std::uint32_t count(std::size_t size) noexcept {
    const auto n = number<std::uint32_t>();
    if (failed_ || n > rest_.size() / size) failed_ = true;
    return failed_ ? 0 : n;
  }
  /// Everything was there and nothing is left over.
  [[nodiscard]] bool complete() const noexcept { return !failed_ && rest_.empty(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

/// Collects the pieces of a stream and gives whole frames.
class FrameStream {
 public:
  explicit FrameStream(std::size_t largest) noexcept : largest_(largest) {}
  void feed(std::string_view piece) {
    pending_.erase(0, at_);
    at_ = 0;
    pending_ += piece;
  }
  /// The next whole payload; nothing while it is not complete. After malformed() nothing ever.
  [[nodiscard]] std::optional<std::string> next();
  /// A length beyond the largest was announced.
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }

 private:
  std::size_t largest_;
  std::string pending_;
  std::size_t at_ = 0;  ///< what of it was given already
  bool malformed_ = false;
};

}  // namespace vacate
