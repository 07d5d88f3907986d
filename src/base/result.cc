// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace vacate {

ErrorCode error_code_of_errno(int number) noexcept {
  switch (number) {
    case ESRCH:
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return ErrorCode::gone;
    case EACCES:
    case EPERM:
      return ErrorCode::denied;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENOTTY:
      return ErrorCode::unsupported;
    case ETIMEDOUT:
      return ErrorCode::timed_out;
    case EAGAIN:
    case EBUSY:
      return ErrorCode::busy;
    case EINVAL:
      return ErrorCode::malformed;
    default:
      return ErrorCode::io;
  }
}

Error system_error(std::string_view what, int number) {
  return Error{error_code_of_errno(number), std::string(what) + ": " + std::generic_category().message(number)};
}

}  // namespace vacate
