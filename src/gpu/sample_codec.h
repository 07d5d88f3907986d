// SPDX-License-Identifier: Apache-2.0
// A DriverSample as bytes, for the way from the driver child to vacate. Pure. The child runs the vendor's code, so what
// it sends is read like a stranger's: bounds, ranges and order are checked, and one wrong byte makes the whole sample
// malformed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/driver_session.h"

namespace vacate {

[[nodiscard]] std::string encode_sample(const DriverSample& sample);
/// malformed: not what encode_sample() writes.
[[nodiscard]] Result<DriverSample> decode_sample(std::string_view bytes);

}  // namespace vacate
