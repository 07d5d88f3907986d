// SPDX-License-Identifier: Apache-2.0
// The machine's nvidia-cuda-mps-control without -d: hands its standard input to the daemon and prints what that says
// (facts.md 1.8). The daemon is lab/machine/mps_daemon.h.
#pragma once

#include <string_view>

namespace lab {

inline constexpr const char* kMpsPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";
inline constexpr const char* kMpsPipeDirectory = "/tmp/nvidia-mps";  ///< where the variable says nothing
inline constexpr const char* kMpsSocket = "/control";                ///< in that directory

/// Is this the name by which the program is called?
[[nodiscard]] bool is_mps_control(std::string_view argv0) noexcept;

/// Exit code: 0, or 1 if no daemon can be talked to.
[[nodiscard]] int ask_mps_daemon();

}  // namespace lab
