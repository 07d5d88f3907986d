// SPDX-License-Identifier: Apache-2.0
// Runs a command in the machine of a case, its actors started, with the caller's standard streams: for benchmarks,
// which want to look at a machine with several tools. Exit code of the command, or 125 where the machine could not be
// made.
//
// usage: bench_in_machine CASE COMMAND [ARGUMENT...]
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "lab/case/parse.h"
#include "lab/machine/machine.h"

namespace {

constexpr int kBroken = 125;

int say(const std::string& what) {
  fmt::print(stderr, "bench_in_machine: {}\n", what);
  return kBroken;
}

/// In a child of the machine's init, which reaps every child of its own before it could be asked how it ended.
int run(char** command) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return say("no pipe");
  const pid_t between = fork();
  if (between < 0) return say("no process");
  if (between == 0) {
    close(ends[0]);
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[1]);
      execvp(command[0], command);
      _exit(127);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) _exit(1);
    const char code = static_cast<char>(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    _exit(write(ends[1], &code, 1) == 1 ? 0 : 1);
  }
  close(ends[1]);
  char code = static_cast<char>(kBroken);
  ssize_t got = -1;
  do {
    got = read(ends[0], &code, 1);
  } while (got < 0 && errno == EINTR);
  close(ends[0]);
  return static_cast<unsigned char>(code);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return say("usage: bench_in_machine CASE COMMAND [ARGUMENT...]");
  const auto scenario = lab::read_case(argv[1]);
  if (!scenario) return say(scenario.error().message);
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const lab::MachinePaths paths{folder / "vacate", folder / "vacate-lab-actor", "",
                                folder.parent_path() / "lib" / "nvml"};
  const auto code = lab::run_in_machine(*scenario, paths, [&](lab::Machine& machine) {
    const auto started = machine.start_actors();
    return started ? run(argv + 2) : say(started.error().message);
  });
  return code ? *code : say(code.error().message);
}
