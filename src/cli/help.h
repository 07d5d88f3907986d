// SPDX-License-Identifier: Apache-2.0
// The help texts: at most 80 columns, two examples each, no full stop at the end of a line. A test holds them against
// the options that are parsed.
#pragma once

#include <string_view>

namespace vacate {

[[nodiscard]] std::string_view general_help() noexcept;
[[nodiscard]] std::string_view status_help() noexcept;
[[nodiscard]] std::string_view free_help() noexcept;
[[nodiscard]] std::string_view wait_help() noexcept;
[[nodiscard]] std::string_view why_help() noexcept;
[[nodiscard]] std::string_view doctor_help() noexcept;
[[nodiscard]] std::string_view shm_help() noexcept;
[[nodiscard]] std::string_view unit_help() noexcept;
[[nodiscard]] std::string_view record_help() noexcept;
[[nodiscard]] std::string_view run_help() noexcept;
[[nodiscard]] std::string_view log_help() noexcept;

}  // namespace vacate
