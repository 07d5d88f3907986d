// SPDX-License-Identifier: Apache-2.0
#include "os/system_calls.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vacate {

int open_pidfd(pid_t pid) noexcept { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)); }

int signal_pidfd(int pidfd, int signal) noexcept {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0U));
}

int close_descriptors_from(unsigned first) noexcept {
  return static_cast<int>(syscall(SYS_close_range, first, ~0U, 0U));
}

ssize_t read_directory(int fd, char* buffer, std::size_t size) noexcept {
  return syscall(SYS_getdents64, fd, buffer, size);
}

int compare_tables(pid_t a, pid_t b) noexcept {
  return static_cast<int>(syscall(SYS_kcmp, a, b, KCMP_FILES, 0UL, 0UL));
}

int compare_files(pid_t a, int fd_a, pid_t b, int fd_b) noexcept {
  return static_cast<int>(
      syscall(SYS_kcmp, a, b, KCMP_FILE, static_cast<unsigned long>(fd_a), static_cast<unsigned long>(fd_b)));
}

}  // namespace vacate
