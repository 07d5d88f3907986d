// SPDX-License-Identifier: Apache-2.0
// Places for descriptors in which no look at the process's own table finds them (facts.md 3.1). They stay there until
// the process ends; whoever puts them there closes its own.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lab {

struct NodeRef;

/// Into the table of a new thread, which has no other descriptor above 2, blocks every signal and does nothing. To be
/// called with signals blocked.
[[nodiscard]] vacate::Result<void> put_in_thread(const std::vector<NodeRef>& nodes);

/// Into the queue of a socket that has been sent to and not read from; returns both of its ends.
[[nodiscard]] vacate::Result<std::vector<vacate::UniqueFd>> put_in_queue(const std::vector<NodeRef>& nodes);

}  // namespace lab
