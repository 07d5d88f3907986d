// SPDX-License-Identifier: Apache-2.0
// What /proc/PID/cmdline and comm say about the calling process, changed after its start as setproctitle does.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lab {

/// Makes /proc/self/cmdline these words; none: empty, as a kernel thread's. Works for every user and any length.
[[nodiscard]] vacate::Result<void> set_cmdline(const std::vector<std::string>& words);
/// Sets comm of the calling thread, cut to 15 bytes.
void set_comm(std::string_view name) noexcept;
/// The last component of a path.
[[nodiscard]] std::string_view base_name(std::string_view path) noexcept;
template <std::same_as<std::string> Text>
std::string_view base_name(Text&& path) noexcept = delete;  // a view into what is gone

}  // namespace lab
