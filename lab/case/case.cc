// SPDX-License-Identifier: Apache-2.0
#include "lab/case/case.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace lab {
namespace {

constexpr std::array kSignals{
    std::pair{"HUP", SIGHUP},   std::pair{"INT", SIGINT},   std::pair{"QUIT", SIGQUIT}, std::pair{"ILL", SIGILL},
    std::pair{"TRAP", SIGTRAP}, std::pair{"ABRT", SIGABRT}, std::pair{"BUS", SIGBUS},   std::pair{"FPE", SIGFPE},
    std::pair{"KILL", SIGKILL}, std::pair{"USR1", SIGUSR1}, std::pair{"SEGV", SIGSEGV}, std::pair{"USR2", SIGUSR2},
    std::pair{"PIPE", SIGPIPE}, std::pair{"ALRM", SIGALRM}, std::pair{"TERM", SIGTERM}, std::pair{"CHLD", SIGCHLD},
    std::pair{"CONT", SIGCONT}, std::pair{"STOP", SIGSTOP}, std::pair{"TSTP", SIGTSTP}, std::pair{"TTIN", SIGTTIN},
    std::pair{"TTOU", SIGTTOU}, std::pair{"URG", SIGURG},   std::pair{"XCPU", SIGXCPU}, std::pair{"WINCH", SIGWINCH},
    std::pair{"SYS", SIGSYS},
};

constexpr std::array<std::string_view, 11> kShells{"sh",  "bash", "dash", "zsh",  "ksh",  "mksh",
                                                   "ash", "fish", "csh",  "tcsh", "rbash"};

}  // namespace

const ActorSpec* Case::actor(std::string_view wanted) const noexcept {
  const auto found = std::find_if(actors.begin(), actors.end(), [&](const ActorSpec& a) { return a.name == wanted; });
  return found == actors.end() ? nullptr : &*found;
}

std::string_view word_of(User user) noexcept {
  switch (user) {
    case User::root:
      return "root";
    case User::alice:
      return "alice";
    case User::bob:
      return "bob";
  }
  return {};
}

std::string_view signal_word(int number) noexcept {
  for (const auto& [word, value] : kSignals) {
    if (value == number) return word;
  }
  return {};
}

std::optional<int> signal_number(std::string_view word) noexcept {
  for (const auto& [name, value] : kSignals) {
    if (word == name) return value;
  }
  return std::nullopt;
}

bool is_shell(std::string_view exe) noexcept {
  const auto base = exe.substr(exe.rfind('/') + 1);  // npos + 1 is 0
  return std::find(kShells.begin(), kShells.end(), base) != kShells.end();
}

bool glob_matches(std::string_view glob, std::string_view name) {
  return ::fnmatch(std::string(glob).c_str(), std::string(name).c_str(), 0) == 0;
}

}  // namespace lab
