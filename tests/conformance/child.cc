// SPDX-License-Identifier: Apache-2.0
// Forking and ending for child.h. Children are signalled through their pidfd only.
#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace lab {

using vacate::UniqueFd;

namespace {

std::string read_until_closed(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

Child::Child(const std::function<void(int say)>& set_up) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  UniqueFd from_child(ends[0]);
  UniqueFd say(ends[1]);
  pid_ = fork();
  if (pid_ < 0) std::abort();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    from_child.reset();
    set_up(say.get());
    say.reset();
    for (;;) pause();
  }
  pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  say.reset();
  said_ = read_until_closed(from_child.get());
}

void Child::signal(int number) const { syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0U); }

bool Child::ends_within(int milliseconds) {
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  return poll(&ended, 1, milliseconds) == 1;
}

void Child::end() {
  if (!pidfd_) return;
  signal(SIGKILL);
  siginfo_t ended{};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &ended, WEXITED) != 0 && errno == EINTR) {
  }
  pidfd_.reset();
}

std::string Child::status(const std::string& key) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    std::istringstream words(line.substr(key.size() + 1));
    std::string word;
    words >> word;
    return word;
  }
  return "";
}

std::string Child::wait_channel() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/wchan");
  std::string name;
  file >> name;
  return name;
}

bool Child::waits_in_ioctl(unsigned long command) const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/syscall");
  long number = -1;
  unsigned long descriptor = 0;
  unsigned long argument = 0;
  file >> number >> std::hex >> descriptor >> argument;
  return file && number == SYS_ioctl && argument == command && wait_channel() == "request_wait_answer";
}

void become_another_program() {
  // `cat` of a pipe whose other end it has itself waits for ever.
  std::array<int, 2> ends{};
  if (pipe(ends.data()) == 0) dup2(ends[0], STDIN_FILENO);
  execl("/bin/cat", "cat", nullptr);
  _exit(127);
}

}  // namespace lab
