// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/case_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "lab/runner/failure_text.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Result;
using vacate::UniqueFd;

/// Status of a worker whose case could not be run because the lab broke.
constexpr int kBrokenStatus = 70;

// glibc 2.36 declares the wrappers of these without extern "C".
UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }
void send_kill(const UniqueFd& pidfd) { ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0); }

/// Longer than any sound case: the start of the machine, all its steps, and the machine's end.
Deadline deadline_of(const Case& scenario, const StepsOptions& options) {
  double seconds = 60;
  for (const Step& step : scenario.steps) {
    if (const auto* run = std::get_if<verb::Run>(&step.verb)) seconds += run->expect.within * options.time_scale;
    if (const auto* finish = std::get_if<verb::Finish>(&step.verb))
      seconds += finish->expect.within * options.time_scale;
    if (const auto* sleep = std::get_if<verb::Sleep>(&step.verb)) seconds += sleep->seconds;
    seconds += 6;
  }
  return Deadline::after(std::chrono::duration_cast<Deadline::Clock::duration>(std::chrono::duration<double>(seconds)));
}

int run_body(Machine& machine, const Case& scenario, const StepsOptions& options) {
  if (const auto started = machine.start_actors(); !started) {
    fmt::print("  the actors did not start: {}\n", vacate::printable(started.error().message));
    std::fflush(stdout);
    return 1;
  }
  const int status = run_steps(machine, scenario, options);
  std::fflush(stdout);  // the body's process may end without
  return status;
}

int run_case(const Case& scenario, const CaseSettings& settings) {
  if (const auto reason = unsupported(scenario)) {
    fmt::print("  the lab cannot do this yet: {}\n", *reason);
    return 1;
  }
  const auto status = run_in_machine(scenario, settings.paths,
                                     [&](Machine& machine) { return run_body(machine, scenario, settings.steps); });
  if (status) return *status;
  const bool skip = status.error().code == vacate::ErrorCode::unsupported;
  fmt::print("{}{}\n", skip ? "" : "  the lab broke: ", vacate::printable(status.error().message));
  return skip ? kSkipStatus : kBrokenStatus;
}

/// In the child: its output goes to `output`, and it ends with its parent.
[[noreturn]] void be_worker(const Case& scenario, const CaseSettings& settings, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(kBrokenStatus);
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (::dup2(nothing.get(), STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0) {
    std::_Exit(kBrokenStatus);
  }
  const int status = run_case(scenario, settings);
  std::fflush(stdout);
  std::_Exit(status);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 8192> buffer{};
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

}  // namespace

int run_steps(Machine& machine, const Case& scenario, const StepsOptions& options) {
  StepRunner runner(machine, scenario, options);
  for (std::size_t n = 0; n < scenario.steps.size(); ++n) {
    const StepOutcome outcome = runner.execute(scenario.steps[n]);
    if (outcome.differences.empty()) continue;
    fmt::print("{}", failure_text(scenario, n + 1, outcome));
    return 1;  // what follows rests on this step
  }
  return 0;
}

Result<CaseWorker> CaseWorker::start(const Case& scenario, const CaseSettings& settings) {
  CaseWorker worker;
  worker.result_ = {scenario.path, scenario.name, scenario.title, Verdict::failed, {}, 0};
  // A file, not a pipe: nothing that outlives the case can keep us from its end.
  worker.output_.reset(::memfd_create("vacate-lab", MFD_CLOEXEC));
  if (!worker.output_) return vacate::system_error("memfd_create");
  worker.begin_ = Deadline::Clock::now();
  worker.deadline_ = deadline_of(scenario, settings.steps);
  std::fflush(nullptr);  // or the child prints it again
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return vacate::system_error("fork");
  if (pid == 0) be_worker(scenario, settings, worker.output_.get(), parent);
  worker.pidfd_ = open_pidfd(pid);
  if (!worker.pidfd_) return vacate::system_error("pidfd_open");
  return worker;
}

CaseResult CaseWorker::finish() {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  while (::poll(&ended, 1, deadline_.poll_timeout_ms()) < 0 && errno == EINTR) {
  }
  const bool overdue = (ended.revents & POLLIN) == 0;
  if (overdue) kill();
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) < 0 && errno == EINTR) {
  }
  pidfd_.reset();
  result_.seconds = std::chrono::duration<double>(Deadline::Clock::now() - begin_).count();
  result_.details = read_all(output_.get());
  const bool exited = info.si_code == CLD_EXITED;
  if (exited && info.si_status == 0) {
    result_.verdict = Verdict::passed;
  } else if (exited && info.si_status == kSkipStatus) {
    result_.verdict = Verdict::skipped;
    result_.details = std::string(vacate::trim(result_.details));
  } else if (overdue) {
    result_.details += "  the case did not end in the time of all its steps together, and was ended\n";
  } else if (!exited) {
    result_.details += fmt::format("  the lab's process ended by signal {}\n", info.si_status);
  } else if (result_.details.empty()) {
    result_.details = fmt::format("  the lab's process ended with status {}\n", info.si_status);
  }
  return std::move(result_);
}

void CaseWorker::kill() noexcept {
  if (pidfd_) send_kill(pidfd_);
}

CaseWorker::~CaseWorker() {
  if (!pidfd_) return;
  kill();
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED);
}

}  // namespace lab
