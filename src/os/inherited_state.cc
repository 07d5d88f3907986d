// SPDX-License-Identifier: Apache-2.0
#include "os/inherited_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace vacate {

InheritedState InheritedState::read() noexcept {
  InheritedState state;
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now {};
    state.ignored_[static_cast<std::size_t>(number)] =
        sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  }
  for (int fd = 0; fd < 3; ++fd) state.closed_[static_cast<std::size_t>(fd)] = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
  sigemptyset(&state.blocked_);
  (void)sigprocmask(SIG_SETMASK, nullptr, &state.blocked_);
  state.knows_limit_ = getrlimit(RLIMIT_NOFILE, &state.descriptors_) == 0;
  return state;
}

void InheritedState::restore() const noexcept {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    action.sa_handler = ignored_[static_cast<std::size_t>(number)] ? SIG_IGN : SIG_DFL;
    (void)sigaction(number, &action, nullptr);  // KILL, STOP and the two of the C library refuse
  }
  for (int fd = 0; fd < 3; ++fd)
    if (closed_[static_cast<std::size_t>(fd)]) (void)close(fd);
  if (knows_limit_) (void)setrlimit(RLIMIT_NOFILE, &descriptors_);
  (void)sigprocmask(SIG_SETMASK, &blocked_, nullptr);
}

}  // namespace vacate
