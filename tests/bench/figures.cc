// SPDX-License-Identifier: Apache-2.0
// Prints the figures of docs/performance.md: how long, how large, how soon, each with its budget. Runs the shipped
// programs on machines of the lab; it changes nothing outside them. Exit code 1 where a median is over its budget.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/deadline.h"
#include "base/result.h"
#include "gpu/driver_session.h"
#include "lab/case/parse.h"
#include "lab/driver/driver.h"
#include "lab/machine/machine.h"

namespace {

using lab::Machine;
using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as the driver's time stamps

constexpr const char* kStubborn = "tests/cases/incident-stubborn-96gib.toml";
constexpr const char* kIdle = "tests/bench/idle-100.toml";
constexpr std::size_t kFreeRuns = 7;
constexpr std::size_t kStatusRuns = 21;
constexpr std::size_t kStartRuns = 51;
constexpr double kMiB = 1024.0 * 1024.0;

/// One line of the table. Values and budget have the same unit; `decimals` is for print only.
struct Figure {
  const char* name;
  const char* unit;
  int decimals;
  double budget;
  std::vector<double> values;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Prints the line of `figure`; whether its median keeps to the budget.
bool print(const Figure& figure) {
  const auto [smallest, largest] = std::minmax_element(figure.values.begin(), figure.values.end());
  const bool ok = median(figure.values) <= figure.budget;
  fmt::print("{:<28} {:>9.{}f} {:>9.{}f} {:>9.{}f} {:>9.{}f} {:<4} {:>4}  {}\n", figure.name, *smallest,
             figure.decimals, median(figure.values), figure.decimals, *largest, figure.decimals, figure.budget,
             figure.decimals, figure.unit, figure.values.size(), ok ? "ok" : "over");
  return ok;
}

/// The folder that holds this program and those under test.
std::filesystem::path program_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

lab::MachinePaths machine_paths() {
  const auto folder = program_folder();
  return {.vacate = folder / "vacate",
          .actor = folder / "vacate-lab-actor",
          .nvml = "",
          .eras = folder.parent_path() / "lib" / "nvml"};
}

/// How a command ended that was run as a child of this process.
struct Ended {
  double milliseconds = 0;
  double peak_mib = 0;     ///< of the command and the children it collected
  double cpu_seconds = 0;  ///< of the same, user and system
};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// Runs `arguments` with standard output thrown away. An exit code other than `wanted` is an error: its figure would be
/// of something else. Peak memory starts with what this process has resident, because the kernel counts from the fork.
Result<Ended> run_and_measure(const std::vector<std::string>& arguments, int wanted = 0) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::array<char*, 1> environment = {nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = Clock::now();
  pid_t child = -1;
  const int failure = posix_spawn(&child, arguments[0].c_str(), &files, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (failure != 0) return vacate::system_error(fmt::format("start {}", arguments[0]), failure);
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return vacate::system_error("wait4");
  Ended ended{.milliseconds = milliseconds_since(start),
              .peak_mib = static_cast<double>(usage.ru_maxrss) / 1024.0,
              .cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
    return Error{ErrorCode::bug, fmt::format("{} ended with wait status {:#x}", fmt::join(arguments, " "), status)};
  }
  return ended;
}

/// Figures that a body in a machine hands back: the machine is another process, so they live in memory that both share.
struct Handover {
  double free_seconds = 0;
  double free_after_release = 0;                                      // milliseconds
  std::array<double, kStatusRuns> status{}, driver{}, status_peak{};  // milliseconds, milliseconds, MiB
  double wait_hour = 0;                                               // seconds of CPU
};

class SharedHandover {
 public:
  SharedHandover() {
    void* memory = mmap(nullptr, sizeof(Handover), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    handover_ = new (memory) Handover();
  }
  ~SharedHandover() { munmap(handover_, sizeof(Handover)); }
  SharedHandover(const SharedHandover&) = delete;
  SharedHandover& operator=(const SharedHandover&) = delete;
  Handover& operator*() const { return *handover_; }
  Handover* operator->() const { return handover_; }

 private:
  Handover* handover_;
};

/// Runs `body` on a machine of the case in `path`; an error message of the body goes to standard error.
Result<void> on_machine(const std::string& path, const std::function<Result<void>(Machine&)>& body) {
  auto scenario = lab::read_case(path);
  if (!scenario) return scenario.error();
  auto code = lab::run_in_machine(*scenario, machine_paths(), [&](Machine& machine) {
    auto done = machine.start_actors();
    if (done) done = body(machine);
    if (!done) fmt::print(stderr, "bench: {}: {}\n", scenario->name, done.error().message);
    return done ? 0 : 1;
  });
  if (!code) return code.error();
  if (*code != 0) return Error{ErrorCode::bug, fmt::format("{} did not run to its end", path)};
  return {};
}

/// Runs `body` in a child of the machine's init, which reaps every child of its own and so could measure none.
Result<void> as_ordinary_process(const std::function<Result<void>()>& body) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return vacate::system_error("pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return vacate::system_error("fork");
  if (child == 0) {
    signal(SIGCHLD, SIG_DFL);
    auto done = body();
    if (!done) fmt::print(stderr, "bench: {}\n", done.error().message);
    const char verdict = done ? 'y' : 'n';
    _exit(write(ends[1], &verdict, 1) == 1 ? 0 : 1);
  }
  close(ends[1]);
  char verdict = 'n';
  ssize_t got = -1;
  do {
    got = read(ends[0], &verdict, 1);
  } while (got < 0 && errno == EINTR);
  close(ends[0]);
  if (got != 1 || verdict != 'y') return Error{ErrorCode::bug, "measuring failed"};
  return {};
}

/// Where the driver's nodes are mounted in this machine: the lab's own `control` file is beside them.
Result<std::string> find_driver_mount() {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, folder, type, rest;
  while (mounts >> device >> folder >> type && std::getline(mounts, rest)) {
    if (type.starts_with("fuse") && access((folder + "/control").c_str(), R_OK) == 0) return folder;
  }
  return Error{ErrorCode::bug, "no driver is mounted in the machine"};
}

/// When the last client lost its last reference.
Result<Clock::time_point> last_release() {
  auto folder = find_driver_mount();
  if (!folder) return folder.error();
  auto state = lab::read_driver_state(*folder);
  if (!state) return state.error();
  std::int64_t last = 0;
  for (const auto& gpu : state->gpus) last = std::max(last, gpu.last_release_ns);
  if (last == 0) return Error{ErrorCode::bug, "the driver released nothing"};
  return Clock::time_point(std::chrono::nanoseconds(last));
}

/// Plays incident 1 up to the command and measures that.
Result<void> play_stubborn(Machine& machine, Handover& handover) {
  if (auto sent = machine.send_signal("api", SIGKILL); !sent) return sent;
  if (auto exited = machine.wait_exit("api", Deadline::after(std::chrono::seconds(5))); !exited) return exited;
  lab::CommandSpec command;
  command.argv = {"vacate", "free", "--yes"};
  auto ended = machine.run(command, Deadline::after(std::chrono::seconds(30)));
  const auto now = Clock::now();
  if (!ended) return ended.error();
  if (ended->exit_code != 0)
    return Error{ErrorCode::bug, fmt::format("exit code {}: {}{}", ended->exit_code, ended->out, ended->err)};
  auto released = last_release();
  if (!released) return released.error();
  handover.free_seconds = ended->seconds;
  handover.free_after_release = std::chrono::duration<double, std::milli>(now - *released).count();
  return {};
}

Result<std::vector<Figure>> measure_free() {
  Figure whole{"free, end to end", "s", 3, 1.5, {}};
  Figure release{"free, last release to exit", "ms", 1, 100, {}};
  SharedHandover handover;
  for (std::size_t run = 0; run < kFreeRuns; ++run) {
    auto done = on_machine(kStubborn, [&](Machine& machine) { return play_stubborn(machine, *handover); });
    if (!done) return done.error();
    whole.values.push_back(handover->free_seconds);
    release.values.push_back(handover->free_after_release);
  }
  return std::vector<Figure>{whole, release};
}

/// One start, sample and end of the driver child, in a process of its own as in the product. Milliseconds.
double driver_alone() {
  const auto start = Clock::now();
  auto session = vacate::DriverSession::start();
  if (!session) return 0;
  const auto deadline = Deadline::after(std::chrono::seconds(5));
  const auto sample = session->sample(deadline);
  session->close(deadline);
  return sample.gpus.empty() ? 0 : milliseconds_since(start);
}

Result<void> sample_status(Handover& handover) {
  for (std::size_t run = 0; run < kStatusRuns; ++run) {
    auto ended = run_and_measure({"/usr/local/bin/vacate", "status", "--json"});
    if (!ended) return ended.error();
    handover.status[run] = ended->milliseconds;
    handover.driver[run] = driver_alone();
    handover.status_peak[run] = ended->peak_mib;
    if (handover.driver[run] <= 0) return Error{ErrorCode::bug, "the driver does not answer"};
  }
  return {};
}

Result<std::vector<Figure>> measure_status() {
  SharedHandover handover;
  auto done =
      on_machine(kIdle, [&](Machine&) { return as_ordinary_process([&] { return sample_status(*handover); }); });
  if (!done) return done.error();
  Figure beyond{"status, beyond the driver", "ms", 1, 20, {}};
  Figure peak{"status, peak memory", "MiB", 1, 16, {}};
  for (std::size_t run = 0; run < kStatusRuns; ++run) {
    beyond.values.push_back(handover->status[run] - handover->driver[run]);
    peak.values.push_back(handover->status_peak[run]);
  }
  return std::vector<Figure>{beyond, peak};
}

/// CPU of a wait of an hour in which nothing changes, from two shorter ones: what the second 50 s of a minute cost goes
/// on for the hour, and the machine is looked at anew every five minutes, each time for no more than a whole status.
Result<void> sample_wait(Handover& handover) {
  static constexpr double kHour = 3600, kShort = 10, kLong = 60, kBetweenLooks = 300;
  const auto wait = [](double seconds) {
    return run_and_measure({"/usr/local/bin/vacate", "wait", "--used-below", "1B", "--timeout",
                            fmt::format("{:.0f}s", seconds), "--quiet"},
                           1);
  };
  const auto brief = wait(kShort);
  if (!brief) return brief.error();
  const auto whole = wait(kLong);
  if (!whole) return whole.error();
  const auto look = run_and_measure({"/usr/local/bin/vacate", "status", "--json"});
  if (!look) return look.error();
  const double a_second = std::max(0.0, whole->cpu_seconds - brief->cpu_seconds) / (kLong - kShort);
  handover.wait_hour =
      whole->cpu_seconds + a_second * (kHour - kLong) + look->cpu_seconds * (kHour - kLong) / kBetweenLooks;
  return {};
}

Result<std::vector<Figure>> measure_wait() {
  SharedHandover handover;
  auto done = on_machine(kIdle, [&](Machine&) { return as_ordinary_process([&] { return sample_wait(*handover); }); });
  if (!done) return done.error();
  return std::vector<Figure>{Figure{"wait, CPU of an hour", "s", 2, 1, {handover->wait_hour}}};
}

Result<std::vector<Figure>> measure_program() {
  const std::string program = program_folder() / "vacate";
  Figure start{"start (vacate --version)", "ms", 2, 5, {}};
  for (std::size_t run = 0; run < kStartRuns; ++run) {
    auto ended = run_and_measure({program, "--version"});
    if (!ended) return ended.error();
    start.values.push_back(ended->milliseconds);
  }
  const std::string stripped = program_folder() / "vacate.stripped";
  if (auto ended = run_and_measure({"/usr/bin/strip", "-o", stripped, program}); !ended) return ended.error();
  const double size = static_cast<double>(std::filesystem::file_size(stripped));
  std::filesystem::remove(stripped);
  return std::vector<Figure>{start, Figure{"binary, stripped", "MiB", 2, 4, {size / kMiB}}};
}

}  // namespace

int main() {
  fmt::print("{:<28} {:>9} {:>9} {:>9} {:>9} {:<4} {:>4}\n", "figure", "min", "median", "max", "budget", "", "runs");
  bool ok = true;
  for (const auto& measure : {measure_free, measure_status, measure_wait, measure_program}) {
    std::fflush(stdout);  // a machine is a fork of this process
    auto figures = measure();
    if (!figures) {
      fmt::print(stderr, "bench: {}\n", figures.error().message);
      return 2;
    }
    for (const Figure& figure : *figures) ok = print(figure) && ok;
  }
  return ok ? 0 : 1;
}
