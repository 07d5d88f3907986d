// SPDX-License-Identifier: Apache-2.0
// The version that `vacate --version` and every JSON object of a status say: that of CMakeLists.txt.
#pragma once

#include <string_view>

namespace vacate {

inline constexpr std::string_view kVersion = VACATE_VERSION;

}  // namespace vacate
