// SPDX-License-Identifier: Apache-2.0
#include "cli/signal_watch.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace vacate {

Result<SignalWatch> SignalWatch::start() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction now {};
    const bool ignored = sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (!ignored) sigaddset(&set, signal);  // a blocked signal is queued although it is ignored: nohup would not work
  }
  UniqueFd descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return system_error("signalfd");
  sigset_t before;
  if (sigprocmask(SIG_BLOCK, &set, &before) != 0) return system_error("sigprocmask");
  return SignalWatch(std::move(descriptor), before);
}

void SignalWatch::stop() noexcept { (void)sigprocmask(SIG_SETMASK, &before_, nullptr); }

int SignalWatch::caught() noexcept {
  signalfd_siginfo info{};
  if (caught_ == 0 && read(descriptor_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    caught_ = static_cast<int>(info.ssi_signo);
  return caught_;
}

}  // namespace vacate
