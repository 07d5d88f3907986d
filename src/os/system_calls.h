// SPDX-License-Identifier: Apache-2.0
// System calls that the C library of Debian 12 or older ones do not wrap. Each returns what the kernel returns: -1 and
// errno on failure. Signals are sent through a pidfd only; nothing here takes a bare pid to signal.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace vacate {

/// pidfd_open(2), 5.3: close-on-exec always.
[[nodiscard]] int open_pidfd(pid_t pid) noexcept;
/// pidfd_send_signal(2), 5.1.
[[nodiscard]] int signal_pidfd(int pidfd, int signal) noexcept;
/// close_range(2), 5.9.
[[nodiscard]] int close_descriptors_from(unsigned first) noexcept;
/// getdents64(2).
[[nodiscard]] ssize_t read_directory(int fd, char* buffer, std::size_t size) noexcept;

/// kcmp(2): 0 the same, 1 less, 2 greater, 3 different without an order; -1 and errno.
[[nodiscard]] int compare_tables(pid_t a, pid_t b) noexcept;
[[nodiscard]] int compare_files(pid_t a, int fd_a, pid_t b, int fd_b) noexcept;

}  // namespace vacate
