// SPDX-License-Identifier: Apache-2.0
// The one way to wait: for descriptors and a deadline, never for time alone. A signal that is handled elsewhere (EINTR)
// does not end a wait early.
#pragma once

#include <poll.h>

#include <cerrno>
#include <vector>

#include "base/deadline.h"

namespace vacate {

/// Waits until one of `entries` has something to say or the deadline passes; revents are filled in. True: one of them
/// has.
inline bool wait_for(std::vector<pollfd>& entries, Deadline deadline) noexcept {
  for (;;) {
    const int ready = ::poll(entries.data(), static_cast<nfds_t>(entries.size()), deadline.poll_timeout_ms());
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR) return false;  // ENOMEM: the caller looks at its processes again at the deadline
  }
}

/// Waits for `descriptor` (-1: nobody) alone. True: it has something to say.
inline bool wait_for(int descriptor, Deadline deadline) {
  std::vector<pollfd> entries;
  if (descriptor >= 0) entries.push_back({descriptor, POLLIN, 0});
  return wait_for(entries, deadline);
}

/// Has `descriptor` (-1: nobody) something to say right now?
inline bool is_readable(int descriptor) { return descriptor >= 0 && wait_for(descriptor, Deadline::at({})); }

}  // namespace vacate
