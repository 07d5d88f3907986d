// SPDX-License-Identifier: Apache-2.0
// The one error type of vacate and the one way to return it. Wraps tl::expected so that the day
// std::expected has the monadic calls everywhere only this file changes. Nothing here logs or throws.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace vacate {

/// What a caller can do about a failure; chosen by that, not by where it happened.
enum class ErrorCode {
  gone,         ///< the process, file or device is not there any more: treat as ended
  denied,       ///< no permission: say so, carry on with what is visible
  unsupported,  ///< this kernel or driver cannot do it: use another way
  timed_out,    ///< the deadline passed
  busy,         ///< somebody else has it: try again later
  malformed,    ///< the input is wrong: say which and stop
  io,           ///< any other failure of the system
  refused,      ///< vacate itself declines
  bug,          ///< a defect of vacate
};

/// An error: a code and one line for people. Context is added once a layer, outermost first.
struct Error {
  ErrorCode code = ErrorCode::bug;
  std::string message;

  /// The same error seen from one layer further out: "WHAT: message".
  [[nodiscard]] Error within(std::string_view what) const { return Error{code, std::string(what) + ": " + message}; }
};

/// Maps an errno of a system call on /proc, a pidfd or a file to what the caller can do.
[[nodiscard]] ErrorCode error_code_of_errno(int number) noexcept;

/// Error of a failed system call: `what` and the text of `number` (default: the current errno).
[[nodiscard]] Error system_error(std::string_view what, int number = errno);

/// Either a T or an Error; ignoring one is a compiler warning, hence an error.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

/// Result of something done for its effect.
template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
 public:
  using tl::expected<void, Error>::expected;
  Result() = default;
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : tl::expected<void, Error>(tl::unexpect, std::move(error)) {}
};

}  // namespace vacate
