// SPDX-License-Identifier: Apache-2.0
// A figure or fact read from the system, or why there is none. Unknown is never zero and never
// takes part in a sum: there is no conversion that would make it so.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace vacate {

enum class Unknown { not_asked, not_supported, no_permission, timed_out, implausible, failed };

/// The word used for `reason` in JSON and messages, e.g. "not supported".
[[nodiscard]] std::string_view describe(Unknown reason) noexcept;

template <class T>
class Reading {
 public:
  Reading() = default;                            // unknown: nobody asked
  Reading(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Reading(Unknown reason) : value_(reason) {}     // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool known() const noexcept { return std::holds_alternative<T>(value_); }
  [[nodiscard]] explicit operator bool() const noexcept { return known(); }
  /// The value. Only where known(); checked, ends the program otherwise (a defect, before any signal).
  [[nodiscard]] const T& value() const { return std::get<T>(value_); }
  [[nodiscard]] const T& operator*() const { return value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  [[nodiscard]] T value_or(T fallback) const { return known() ? value() : std::move(fallback); }
  /// Why there is no value. Only where !known().
  [[nodiscard]] Unknown reason() const { return std::get<Unknown>(value_); }

  bool operator==(const Reading&) const = default;

 private:
  std::variant<Unknown, T> value_{Unknown::not_asked};
};

}  // namespace vacate
