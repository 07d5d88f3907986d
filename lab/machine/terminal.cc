// SPDX-License-Identifier: Apache-2.0
// See terminal.h.
#include "lab/machine/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace lab {
namespace {

/// The caller's terminal without editing and echo while this lives; does nothing if standard input is none.
class RawMode {
 public:
  RawMode() {
    is_terminal_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!is_terminal_) return;
    termios raw = before_;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;
  ~RawMode() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }

 private:
  bool is_terminal_ = false;
  termios before_{};
};

void write_all(int to, const char* data, ssize_t size) {
  while (size > 0) {
    const ssize_t n = write(to, data, static_cast<std::size_t>(size));
    if (n < 0 && errno == EAGAIN) {
      pollfd room{to, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      return;
    } else if (n > 0) {
      data += n;
      size -= n;
    }
  }
}

/// Whether there was anything; at the end of the input a terminal is told so by its end-of-file character.
bool copy_some(int from, int to, bool is_input) {
  std::array<char, 4096> buffer{};
  const ssize_t n = read(from, buffer.data(), buffer.size());
  if (n > 0) write_all(to, buffer.data(), n);
  if (n == 0 && is_input) write_all(to, "\x04", 1);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/// The size may change at any time; pid 1 of the machine is in no session that would be told.
void follow_size(int terminal) {
  winsize size{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) ioctl(terminal, TIOCSWINSZ, &size);
}

}  // namespace

void relay_terminal(int terminal, int pidfd) {
  const RawMode raw;
  follow_size(terminal);
  std::array<pollfd, 3> events{{{STDIN_FILENO, POLLIN, 0}, {terminal, POLLIN, 0}, {pidfd, POLLIN, 0}}};
  for (;;) {
    if (poll(events.data(), events.size(), -1) < 0) continue;
    if ((events[0].revents & (POLLIN | POLLHUP)) != 0) {
      follow_size(terminal);
      if (!copy_some(STDIN_FILENO, terminal, true)) events[0].fd = -1;
    }
    if ((events[1].revents & (POLLIN | POLLHUP)) != 0 && !copy_some(terminal, STDOUT_FILENO, false)) events[1].fd = -1;
    const bool quiet = (events[1].revents & POLLIN) == 0;
    if ((events[2].revents & POLLIN) != 0 && quiet) return;
  }
}

}  // namespace lab
