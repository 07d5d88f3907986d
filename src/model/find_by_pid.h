// SPDX-License-Identifier: Apache-2.0
// Looking up by pid in a list of processes or holders that is sorted by it, as those of a scan are. Pure.
#pragma once

#include <sys/types.h>

#include <algorithm>

namespace vacate {

/// Where the one with this pid is, or would have to be put.
template <class List>
[[nodiscard]] auto place_of_pid(List& list, pid_t pid) noexcept {
  return std::lower_bound(list.begin(), list.end(), pid,
                          [](const auto& each, pid_t wanted) { return each.key.pid < wanted; });
}

/// The one with this pid, a part of `list`; nullptr: there is none.
template <class List>
[[nodiscard]] auto* find_by_pid(List& list, pid_t pid) noexcept {
  const auto at = place_of_pid(list, pid);
  return at != list.end() && at->key.pid == pid ? &*at : nullptr;
}

}  // namespace vacate
