// SPDX-License-Identifier: Apache-2.0
// Runs one job on a few threads until all of it is done. Nothing may fork meanwhile: a child of a process with threads
// can do next to nothing safely, and expendable children do much.
#pragma once

#include <cstddef>
#include <functional>

namespace vacate {

/// Threads worth starting for `pieces` pieces of work: no more than there are cores for this process, than pieces, or
/// than four. At least one.
[[nodiscard]] unsigned workers_for(std::size_t pieces) noexcept;

/// Calls `work` on `count` threads at once, the caller's among them, and returns when every call has. No signal is
/// delivered to the others. Where the system gives no more threads there are fewer calls, so each takes what is left of
/// the work.
void run_on_workers(unsigned count, const std::function<void()>& work);

}  // namespace vacate
