// SPDX-License-Identifier: Apache-2.0
#include "model/action_record.h"

namespace vacate {

std::string_view describe(Deed deed) noexcept {
  switch (deed) {
    case Deed::signal:
      return "signal";
    case Deed::stop_unit:
      return "stop-unit";
    case Deed::unlink:
      return "unlink";
    case Deed::thaw:
      return "thaw";
    case Deed::terminate_client:
      return "terminate-client";
    case Deed::kill_cgroup:
      return "kill-cgroup";
  }
  return "unknown";
}

std::string_view describe(DeedResult result) noexcept {
  switch (result) {
    case DeedResult::done:
      return "done";
    case DeedResult::gone:
      return "gone";
    case DeedResult::denied:
      return "denied";
    case DeedResult::left_alone:
      return "left-alone";
    case DeedResult::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace vacate
