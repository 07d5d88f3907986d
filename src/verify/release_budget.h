// SPDX-License-Identifier: Apache-2.0
// How much longer the release of a GPU may take because of the host memory that goes with it. Pure.
#pragma once

#include <chrono>

#include "base/bytes.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace vacate {

/// Host memory that those whom `plan` ends have locked or pinned, as far as it is known.
[[nodiscard]] Bytes pinned_memory_of(const Snapshot& snapshot, const Plan& plan);

/// A second for each whole 4 GiB, ten minutes at most. The kernel unpins page by page: 243 GB of pinned cache took
/// 26 s on an idle machine with an H100 (a pull request of a serving engine measured it), so 4 GiB
/// a second leaves a loaded one more than twice the time.
[[nodiscard]] std::chrono::milliseconds release_allowance(Bytes pinned) noexcept;

}  // namespace vacate
