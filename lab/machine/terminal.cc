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

/// Whether there was anything.
bool copy_some(int from, int to) {
  std::array<char, 4096> buffer{};
  const ssize_t n = read(from, buffer.data(), buffer.size());
  if (n > 0) write_all(to, buffer.data(), n);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/// What the caller gives the command.
class Input {
 public:
  explicit Input(int terminal) : terminal_(terminal) {}

  /// Whether there may be more.
  [[nodiscard]] bool pass_on() {
    std::array<char, 4096> buffer{};
    const ssize_t n = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (n > 0) {
      write_all(terminal_, buffer.data(), n);
      last_ = buffer.at(static_cast<std::size_t>(n) - 1);
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return true;
    if (last_ != '\n') write_all(terminal_, "\n", 1);  // the last line counts without its end too
    has_ended_ = true;
    say_end();
    return false;
  }

  /// A terminal has no end, only a character that tells the one reader who is waiting for a line just then. Whoever
  /// reads next, or has not set up its terminal yet, has to be told again. What it does not take now it is told later.
  void say_end() const { (void)!write(terminal_, "\x04", 1); }

  [[nodiscard]] int poll_timeout_ms() const { return has_ended_ ? 200 : -1; }

 private:
  int terminal_;
  char last_ = '\n';
  bool has_ended_ = false;
};

/// The size may change at any time; pid 1 of the machine is in no session that would be told.
void follow_size(int terminal) {
  winsize size{};
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) ioctl(terminal, TIOCSWINSZ, &size);
}

}  // namespace

void relay_terminal(int terminal, int pidfd) {
  const RawMode raw;
  follow_size(terminal);
  Input input(terminal);
  std::array<pollfd, 3> events{{{STDIN_FILENO, POLLIN, 0}, {terminal, POLLIN, 0}, {pidfd, POLLIN, 0}}};
  for (;;) {
    const int ready = poll(events.data(), events.size(), input.poll_timeout_ms());
    if (ready < 0) continue;
    if (ready == 0) input.say_end();
    if ((events[0].revents & (POLLIN | POLLHUP)) != 0) {
      follow_size(terminal);
      if (!input.pass_on()) events[0].fd = -1;
    }
    if ((events[1].revents & (POLLIN | POLLHUP)) != 0 && !copy_some(terminal, STDOUT_FILENO)) events[1].fd = -1;
    const bool quiet = (events[1].revents & POLLIN) == 0;
    if ((events[2].revents & POLLIN) != 0 && quiet) return;
  }
}

}  // namespace lab
