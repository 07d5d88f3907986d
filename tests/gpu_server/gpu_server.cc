// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu_server/gpu_server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lab/actor/holdings.h"
#include "lab/actor/title.h"

namespace lab {
namespace {

void name_self(const std::vector<std::string>& argv, const std::string& comm) {
  set_comm(comm);
  (void)set_cmdline(argv);  // cosmetic
}

[[noreturn]] void wait_for_signals() {
  for (;;) pause();
}

/// A child as multiprocessing makes one: it holds a pipe's end whose other end only its parent has.
pid_t fork_with_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) _exit(1);
  const pid_t child = fork();
  if (child < 0) _exit(1);
  close(ends[child == 0 ? 1 : 0]);  // the parent's end stays open for as long as it lives, and so does the child's
  return child;
}

[[noreturn]] void be_worker(unsigned gpu) {
  name_self({"VLLM::Worker_TP" + std::to_string(gpu)}, "VLLM::Worker_TP");
  static Holdings holdings;
  HoldPlan plan;
  plan.gpus = {{gpu, gpu}};
  plan.bytes = std::uint64_t{kWorkerMib} << 20U;
  if (const auto held = holdings.acquire(plan); !held) {
    std::fprintf(stderr, "worker %u: %s\n", gpu, held.error().message.c_str());
    _exit(1);
  }
  wait_for_signals();
}

[[noreturn]] void be_engine(unsigned gpus) {
  name_self({"VLLM::EngineCore"}, "VLLM::EngineCor");
  for (unsigned gpu = 0; gpu < gpus; ++gpu) {
    if (fork_with_pipe() == 0) be_worker(gpu);
  }
  wait_for_signals();
}

void note_server(pid_t server) {
  std::FILE* file = std::fopen(kServerPidFile, "we");
  if (file == nullptr) return;  // the test finds no number then, and says so
  std::fprintf(file, "%d", server);
  std::fclose(file);
}

void start_server(unsigned gpus) {
  const pid_t server = fork();
  if (server != 0) return note_server(server);
  setpgid(0, 0);
  for (const int sig : {SIGUSR1, SIGTERM, SIGCHLD}) std::signal(sig, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  be_server(gpus);
}

}  // namespace

void be_server(unsigned gpus) {
  name_self({"python3", "-m", "vllm.entrypoints.openai.api_server"}, "python3");
  if (fork_with_pipe() == 0) be_engine(gpus);
  wait_for_signals();
}

void be_container_init(unsigned gpus) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int sig : {SIGUSR1, SIGTERM, SIGCHLD}) sigaddset(&watched, sig);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  name_self({"/sbin/init"}, "init");
  start_server(gpus);
  for (;;) {
    int sig = 0;
    if (sigwait(&watched, &sig) != 0) continue;
    if (sig == SIGTERM) _exit(0);
    if (sig == SIGUSR1) start_server(gpus);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

}  // namespace lab
