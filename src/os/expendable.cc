// SPDX-License-Identifier: Apache-2.0
#include "os/expendable.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "os/frame.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

constexpr int kChildChannel = 3;
constexpr int kChildShared = 4;

void restore_signals() noexcept {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    (void)sigaction(number, &standard, nullptr);  // KILL, STOP and the two of the C library refuse
  }
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Closes everything from `first` on, and what the caller has as its standard streams.
void close_all_from(int first) noexcept {
  static constexpr int kMostDescriptors = 65536;
  if (close_descriptors_from(static_cast<unsigned>(first)) != 0) {  // before 5.9
    for (int fd = first; fd < kMostDescriptors; ++fd) (void)close(fd);
  }
  for (int fd = 0; fd < kChildChannel; ++fd) (void)close(fd);
  // The lowest free numbers are 0, 1, 2 now.
  for (int fd = 0; fd < kChildChannel; ++fd) (void)!::open("/dev/null", O_RDWR);
}

/// Puts both at their numbers, `shared` only if there is one. Copies above both first: each may lie where the other
/// belongs.
bool arrange(int channel, int shared) noexcept {
  const int copy = shared < 0 ? -1 : fcntl(shared, F_DUPFD_CLOEXEC, kChildShared + 1);
  if (shared >= 0 && copy < 0) return false;
  if (channel != kChildChannel && dup2(channel, kChildChannel) < 0) return false;
  return copy < 0 || dup2(copy, kChildShared) >= 0;
}

/// Nothing thrown (out of memory) may leave the child: it would run the caller's own clean-up with descriptors whose
/// numbers mean other files here. A pidfd of the caller's could be a process's directory by now, which takes signals.
int run_contained(const std::function<int(int, int)>& work, int shared) noexcept {
  static constexpr int kDefect = 70;
  try {
    return work(kChildChannel, shared);
  } catch (...) {
    return kDefect;
  }
}

[[noreturn]] void run_child(pid_t parent, int channel, int shared, const char* name,
                            const std::function<int(int, int)>& work) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it died before the line above could see it
  (void)prctl(PR_SET_NAME, name);
  restore_signals();
  (void)setsid();
  (void)!chdir("/");
  if (!arrange(channel, shared)) _exit(1);
  close_all_from(shared < 0 ? kChildShared : kChildShared + 1);
  _exit(run_contained(work, shared < 0 ? -1 : kChildShared));
}

Result<void> wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd wait{fd, events, 0};
    const int n = poll(&wait, 1, deadline.poll_timeout_ms());
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return system_error("poll");
    if (deadline.passed()) return Error{ErrorCode::timed_out, "no answer in time"};
  }
}

}  // namespace

Result<Expendable> Expendable::start(const char* name, const std::function<int(int)>& work) {
  return start_with(name, -1, [&work](int channel, int) { return work(channel); });
}

Result<Expendable> Expendable::start_with(const char* name, int shared, const std::function<int(int, int)>& work) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return system_error("fork");
  if (child == 0) run_child(parent, theirs.get(), shared, name, work);
  theirs.reset();
  // Our child and not reaped yet: the number cannot be another process's.
  UniqueFd pidfd(open_pidfd(child));
  // Without a pidfd the channel is closed on return, which ends the child: its next read or write fails.
  if (!pidfd) return system_error("pidfd_open");
  return Expendable(child, std::move(pidfd), std::move(ours));
}

Expendable::Expendable(Expendable&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), channel_(std::move(other.channel_)) {}

Expendable& Expendable::operator=(Expendable&& other) noexcept {
  if (this != &other) {
    abandon();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    channel_ = std::move(other.channel_);
  }
  return *this;
}

Result<std::size_t> Expendable::read_some(char* buffer, std::size_t size, Deadline deadline) {
  for (;;) {
    const ssize_t n = recv(channel_.get(), buffer, size, MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == ECONNRESET) return std::size_t{0};  // it died with bytes of ours unread
    if (errno != EAGAIN && errno != EINTR) return system_error("recv");
    if (auto ready = wait_for(channel_.get(), POLLIN, deadline); !ready) return ready.error();
  }
}

Result<void> Expendable::write_all(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = send(channel_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET) return Error{ErrorCode::gone, "the child has ended"};
    if (errno != EAGAIN && errno != EINTR) return system_error("send");
    if (auto ready = wait_for(channel_.get(), POLLOUT, deadline); !ready) return ready;
  }
  return {};
}

std::optional<int> Expendable::wait(Deadline deadline) noexcept {
  if (pid_ < 0) return std::nullopt;
  channel_.reset();
  if (!wait_for(pidfd_.get(), POLLIN, deadline)) return std::nullopt;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  pidfd_.reset();
  return status;
}

bool Expendable::end_at_once() noexcept {
  static constexpr std::chrono::milliseconds kLastBreath{
      20};  // enough for one that can die; one that cannot is not waited for
  if (pid_ < 0) return true;
  (void)signal_pidfd(pidfd_.get(), SIGKILL);
  return wait(Deadline::after(kLastBreath)).has_value();
}

void Expendable::abandon() noexcept {
  if (!end_at_once()) {
    pid_ = -1;
    pidfd_.reset();
    channel_.reset();
  }
}

bool send_all(int channel, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool send_frame(int channel, std::string_view payload) {
  FrameWriter frame;
  frame.text(payload);
  return send_all(channel, frame.bytes());
}

}  // namespace vacate
