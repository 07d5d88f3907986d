// SPDX-License-Identifier: Apache-2.0
// The handlers. Everything here that runs in one is async-signal-safe.
#include "lab/actor/signals.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "lab/driver/protocol.h"

namespace lab {
namespace {

SignalPolicy own_policy;  // of this process; handlers have no other way to find it
std::atomic<int> dying{0};
std::atomic<std::uint32_t> copies_wanted{0};
std::atomic<bool> let_go_wanted{false};

bool ignored_by_default(int sig) noexcept { return sig == SIGCONT || sig == SIGURG || sig == SIGWINCH; }
bool stops_by_default(int sig) noexcept { return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU; }
bool is_fault(int sig) noexcept {
  return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGABRT;
}

/// An end that it chooses itself is neither slow nor stuck.
void let_go() noexcept {
  if (own_policy.driver_fd < 0) return;
  const DelayRequest none{0};
  ioctl(own_policy.driver_fd, kAnswer);
  ioctl(own_policy.driver_fd, kDelayExit, &none);
}

void record(int sig) noexcept {
  own_policy.board.slot(own_policy.slot).received[static_cast<std::size_t>(sig)].fetch_add(1);
  own_policy.board.announce();
}

void react(int sig) noexcept {
  if (ignored_by_default(sig)) return;
  if (stops_by_default(sig)) {
    kill(getpid(), SIGSTOP);
    return;
  }
  const bool polite = sig == SIGTERM || sig == SIGINT || sig == SIGHUP;
  if (polite && own_policy.on_term == TermHabit::ignore) return;
  if (polite && own_policy.on_term == TermHabit::fork) {
    copies_wanted.fetch_add(1);
    own_policy.board.nudge(own_policy.slot);
    return;
  }
  if (polite && own_policy.on_term == TermHabit::let_go) {
    let_go_wanted.store(true);
    own_policy.board.nudge(own_policy.slot);
    return;
  }
  if (own_policy.on_term == TermHabit::slow && (sig == SIGTERM || sig == SIGINT)) {
    int none = 0;
    dying.compare_exchange_strong(none, sig);
    own_policy.board.nudge(own_policy.slot);  // its loop may be just about to wait
    return;
  }
  die_by(sig);
}

void on_signal(int sig, siginfo_t* info, void* /*context*/) {
  const int saved = errno;
  if (sig == SIGCHLD) {
    reap_children(own_policy.board);
  } else if (sig == parent_ended_signal() && (getppid() != own_policy.parent || own_policy.parent == 0)) {
    // A parent in another pid namespace is 0, before and after.
    let_go();
    _exit(0);
  } else if (is_fault(sig) && info->si_code > 0) {
    die_by(sig);  // a defect of the lab: let it be seen
  } else {
    if (info->si_code <= 0) record(sig);  // sent by a process, not by a terminal or the kernel
    react(sig);
  }
  errno = saved;
}

}  // namespace

int parent_ended_signal() noexcept { return SIGRTMAX - 3; }

void set_signal_policy(const SignalPolicy& fresh) noexcept {
  own_policy = fresh;
  dying.store(0);
  copies_wanted.store(0);
  let_go_wanted.store(false);
}

void install_handlers() noexcept {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (int sig = 1; sig < static_cast<int>(kSignals); ++sig) sigaction(sig, &action, nullptr);  // KILL, STOP: refused
}

void remove_handlers() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int sig = 1; sig < static_cast<int>(kSignals); ++sig) sigaction(sig, &action, nullptr);
}

int dying_by() noexcept { return dying.load(); }

bool take_copy_wanted() noexcept {
  std::uint32_t wanted = copies_wanted.load();
  while (wanted > 0 && !copies_wanted.compare_exchange_weak(wanted, wanted - 1)) {
  }
  return wanted > 0;
}

bool take_let_go_wanted() noexcept { return let_go_wanted.exchange(false); }

void die_by(int sig) noexcept {
  let_go();
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(sig, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, sig);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  syscall(SYS_tgkill, getpid(), gettid(), sig);
  own_policy.board.slot(own_policy.slot).died_by.store(sig);
  _exit(128 + sig);  // a signal whose default is to be ignored, or pid 1 of a namespace
}

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}
SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void unblock_signals() noexcept {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace lab
