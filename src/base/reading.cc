// SPDX-License-Identifier: Apache-2.0
#include "base/reading.h"

namespace vacate {

std::string_view describe(Unknown reason) noexcept {
  switch (reason) {
    case Unknown::not_asked:
      return "not asked";
    case Unknown::not_supported:
      return "not supported";
    case Unknown::no_permission:
      return "no permission";
    case Unknown::timed_out:
      return "timed out";
    case Unknown::implausible:
      return "implausible";
    case Unknown::failed:
      return "failed";
  }
  return "failed";
}

}  // namespace vacate
