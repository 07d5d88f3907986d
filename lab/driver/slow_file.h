// SPDX-License-Identifier: Apache-2.0
// The lab's `slow` file beside the device nodes: its reads take as long as who opened it says. Never shown in /dev.
#pragma once

#include "lab/driver/protocol.h"

namespace lab {

// Through this open file each read, a page fault of a mapping as well, is answered after_ms late; -1: never.
inline constexpr unsigned long kDelayRead = _IOW('v', 13, DelayRequest);

}  // namespace lab
