// SPDX-License-Identifier: Apache-2.0
// A core dump that takes as long as it should: the core goes to the machine's memory, but one page of what is dumped
// has to be read from the driver's `slow` file first. Nothing of the kernel's settings is touched.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace lab {

inline constexpr const char* kCoreFolder = "/run/lab/cores";  ///< in the machine

/// Lifts the machine's limit on cores.
[[nodiscard]] vacate::Result<void> allow_dump();

/// Makes the next dump of this process last `dump_ms` (-1: until KILL). `page`: one of the slow file that nobody else
/// has.
[[nodiscard]] vacate::Result<void> prepare_dump(std::uint32_t page, std::int64_t dump_ms);

}  // namespace lab
