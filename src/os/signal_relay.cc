// SPDX-License-Identifier: Apache-2.0
#include "os/signal_relay.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "os/system_calls.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;

/// How long after a signal the same one reaches the last process of a group, a manager's loop over a control group
/// included.
constexpr std::chrono::milliseconds kOneSender{100};

/// All but those that cannot be taken, those that a fault raises, and two of vacate's own.
sigset_t relayed_signals() noexcept {
  sigset_t set;
  sigfillset(&set);
  for (const int number :
       {SIGKILL, SIGSTOP, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGCHLD, SIGPIPE})
    sigdelset(&set, number);
  return set;
}

[[noreturn]] void be_witness(pid_t parent, int reports) noexcept {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  (void)prctl(PR_SET_NAME, "vacate-witness");
  (void)!chdir("/");
  static constexpr int kChannel = 3;
  if (reports != kChannel && dup2(reports, kChannel) < 0) _exit(1);
  (void)close_descriptors_from(kChannel + 1);
  for (int fd = 0; fd < kChannel; ++fd) (void)close(fd);
  const sigset_t set = relayed_signals();
  for (;;) {
    siginfo_t info{};
    const int number = sigwaitinfo(&set, &info);
    if (number <= 0 || info.si_code == SI_KERNEL) continue;
    const char byte = static_cast<char>(number);
    (void)!write(kChannel, &byte, 1);
  }
}

}  // namespace

Result<SignalRelay> SignalRelay::start() {
  const sigset_t set = relayed_signals();
  UniqueFd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return system_error("signalfd");
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return system_error("sigprocmask");
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return system_error("pipe2");
  UniqueFd reports(ends[0]);
  UniqueFd reporting(ends[1]);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return system_error("fork");
  if (child == 0) be_witness(parent, reporting.get());
  UniqueFd pidfd(open_pidfd(child));
  return SignalRelay(std::move(signals), std::move(reports), std::move(pidfd), child);
}

SignalRelay::~SignalRelay() { end_witness(); }

void SignalRelay::end_witness() noexcept {
  if (!witness_) return;
  (void)signal_pidfd(witness_.get(), SIGKILL);
  (void)waitpid(witness_pid_, nullptr, 0);
  witness_.reset();
}

void SignalRelay::note_witnessed() {
  std::array<char, 64> numbers{};
  for (;;) {
    const ssize_t n = read(reports_.get(), numbers.data(), numbers.size());
    if (n == 0) {  // it was ended: from here on everything is passed on
      reports_.reset();
      return;
    }
    if (n < 0) return;
    for (ssize_t i = 0; i < n; ++i) {
      const int number = static_cast<unsigned char>(numbers[static_cast<std::size_t>(i)]);
      if (pending_.erase(number) == 0)
        witnessed_[number] = Clock::now();
      else
        due_.push_back({number, true});
    }
  }
}

void SignalRelay::collect(pid_t but_from) {
  if (reports_) note_witnessed();
  for (;;) {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return;
    const int number = static_cast<int>(info.ssi_signo);
    if (info.ssi_code == SI_KERNEL) {
      due_.push_back({number, true});
      continue;
    }
    if (static_cast<pid_t>(info.ssi_pid) == but_from) continue;
    const auto seen = witnessed_.find(number);
    const bool was_seen = seen != witnessed_.end() && Clock::now() - seen->second < kOneSender;
    if (seen != witnessed_.end()) witnessed_.erase(seen);
    if (was_seen)
      due_.push_back({number, true});
    else
      pending_.try_emplace(number, reports_ && number != SIGCONT ? Clock::now() + kOneSender : Clock::now());
  }
}

std::optional<Clock::time_point> SignalRelay::next_due() const {
  if (!due_.empty()) return Clock::now();
  std::optional<Clock::time_point> next;
  for (const auto& [number, when] : pending_)
    if (!next || when < *next) next = when;
  return next;
}

std::vector<RelayedSignal> SignalRelay::take_due() {
  const auto now = Clock::now();
  std::vector<RelayedSignal> taken = std::exchange(due_, {});
  for (auto each = pending_.begin(); each != pending_.end();) {
    if (each->second > now) {
      ++each;
      continue;
    }
    taken.push_back({each->first, false});
    each = pending_.erase(each);
  }
  return taken;
}

void SignalRelay::stop_like(int number) const noexcept {
  const UniqueFd self(open_pidfd(getpid()));
  if (!self) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  struct sigaction standard {};
  struct sigaction before {};
  standard.sa_handler = SIG_DFL;
  (void)sigaction(number, &standard, &before);
  (void)signal_pidfd(self.get(), number);
  (void)sigprocmask(SIG_UNBLOCK, &one, nullptr);  // here it stops
  (void)sigprocmask(SIG_BLOCK, &one, nullptr);
  (void)sigaction(number, &before, nullptr);
}

void die_by(int number) noexcept {
  const rlimit none{0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)prctl(PR_SET_DUMPABLE, 0);  // a program that takes cores (core_pattern) is not asked either
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  (void)sigaction(number, &standard, nullptr);
  const UniqueFd self(open_pidfd(getpid()));
  if (!self) return;
  (void)signal_pidfd(self.get(), number);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  (void)sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace vacate
