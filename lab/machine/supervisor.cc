// SPDX-License-Identifier: Apache-2.0
// run_in_machine(): a process S makes the namespaces, the root and the driver, forks the machine's pid 1 and 2, waits,
// and takes everything down. S itself is in none of the machine's process lists. If anybody in the line runner - S -
// pid 1 dies, what is below dies too.
#include <fcntl.h>
#include <linux/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "lab/machine/cgroup.h"
#include "lab/machine/conductor.h"
#include "lab/machine/driver_setup.h"
#include "lab/machine/files.h"
#include "lab/machine/root.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

/// What came out, through a pipe to the caller. Fits into a pipe's buffer, so that nobody ever waits in write.
struct Report {
  std::uint32_t has_run = 0;
  std::int32_t value = 0;  ///< what the body returned, or the ErrorCode
  std::array<char, 1024> message{};
};

void send(int pipe, const Result<int>& result) {
  Report report;
  report.has_run = result ? 1 : 0;
  report.value = result ? *result : static_cast<std::int32_t>(result.error().code);
  if (!result) result.error().message.copy(report.message.data(), report.message.size() - 1);
  (void)!write(pipe, &report, sizeof report);
}

Result<int> receive(int pipe, int status) {
  Report report;
  if (read(pipe, &report, sizeof report) != static_cast<ssize_t>(sizeof report)) {
    return Error{ErrorCode::bug, fmt::format("the machine ended without a word, wait status {:#x}", status)};
  }
  if (report.has_run != 0) return report.value;
  return Error{static_cast<ErrorCode>(report.value), report.message.data()};
}

Result<void> bring_loopback_up() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ);
  request.ifr_flags = IFF_UP;
  if (!socket || ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return system_error("loopback");
  return {};
}

Result<void> leave_host() {
  // A user namespace would not do: mounts below / are locked there, and the kernel makes no overlay over such (EINVAL).
  if (geteuid() != 0) return Error{ErrorCode::unsupported, "needs root: the machine's file system is an overlay of /"};
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET) != 0) {
    return Error{ErrorCode::unsupported, system_error("namespaces").message};
  }
  if (auto done = make_mounts_private(); !done) return done;
  constexpr std::string_view kName = "gpu-lab";
  if (sethostname(kName.data(), kName.size()) != 0) return system_error("host name");
  return bring_loopback_up();
}

/// The parent's end must not be missed because it came before the kernel was asked to tell.
void die_with(const UniqueFd& parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd end{parent.get(), POLLIN, 0};
  if (poll(&end, 1, 0) != 0) _exit(1);
}

Result<UniqueFd> pidfd_of_self() {
  UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!self) return Error{ErrorCode::unsupported, system_error("pidfd").message};
  return self;
}

[[noreturn]] void be_init(const MachineSetup& setup, const UniqueFd& supervisor, int report,
                          const std::function<int(Machine&)>& body) {
  die_with(supervisor);
  Region& region = setup.board.region();
  while (region.pid2.load() == 0) {
    const std::uint32_t seen = region.event.load();
    if (region.pid2.load() == 0) futex_wait(region.event, seen, Deadline::never());
  }
  send(report, Conductor(setup).conduct(body));
  std::fflush(nullptr);
  region.over.store(1);
  setup.board.announce();
  _exit(0);
}

std::atomic<Region*> watched_region{nullptr};

/// A child has ended, perhaps pid 1: the supervisor is to look.
void on_end_of_init(int /*sig*/) {
  const int saved = errno;
  if (Region* region = watched_region.load()) futex_bump(region->event);
  errno = saved;
}

/// Takes down what is left when pid 1 is over or has said so. Its exit waits for everybody in the machine: for pid 2,
/// which only we can reap, and for those stuck in the driver, whom only its end frees.
int await_end(const MachineSetup& setup, pid_t init, pid_t second, DriverServer& driver) {
  Region& region = setup.board.region();
  for (;;) {
    const std::uint32_t seen = region.event.load();
    int status = 0;
    if (second > 0 && waitpid(second, nullptr, WNOHANG) == second) second = 0;
    if (waitpid(init, &status, WNOHANG) == init) return status;
    if (region.over.load() != 0) driver.stop();  // does nothing the second time
    futex_wait(region.event, seen, Deadline::never());
  }
}

/// The groups of the machine on the host.
struct MachineGroups {
  std::string cgroup, v1_freezer;  ///< empty: none
};

Result<void> supervise(const Case& scenario, const MachinePaths& paths, const MachineGroups& groups, int report,
                       const std::function<int(Machine&)>& body) {
  auto config = driver_config(scenario);
  if (!config) return config.error();
  auto self = pidfd_of_self();
  if (!self) return self.error();
  if (auto left = leave_host(); !left) return left;
  auto root = build_root(paths, *config);
  if (!root) return root.error();
  auto driver = DriverServer::start(*config, *root + kDriverDir);
  if (!driver) return driver.error().within("driver");
  if (auto shown = show_device_nodes(*root, *config); !shown) return shown;
  auto board = Board::create(*root + kBoardPath);
  if (!board) return board.error();
  const MachineSetup setup{scenario, *config, *root, groups.cgroup, groups.v1_freezer, *board};
  (void)board->add("init", SlotKind::actor, kNoSlot);

  watched_region.store(&board->region());
  struct sigaction action {};
  action.sa_handler = on_end_of_init;
  sigaction(SIGCHLD, &action, nullptr);
  auto frozen = groups.v1_freezer.empty() ? Result<UniqueFd>(UniqueFd()) : start_thawer(groups.v1_freezer);
  if (!frozen) return frozen.error();
  if (unshare(CLONE_NEWPID) != 0) return system_error("pid namespace");
  const pid_t init = fork();
  if (init < 0) return system_error("fork");
  if (init == 0) be_init(setup, *self, report, body);
  frozen->reset();              // pid 1 alone has it from here
  const pid_t second = fork();  // its parent is outside, as that of the host's kthreadd is
  if (second < 0) return system_error("fork");
  if (second == 0) {
    die_with(*self);
    Conductor(setup).idle();
  }
  board->region().pid2.store(1);
  board->announce();
  await_end(setup, init, second, *driver);
  return {};
}

}  // namespace

namespace {

bool needs_v1_freezer(const Case& scenario) {
  return std::any_of(scenario.actors.begin(), scenario.actors.end(), [](const ActorSpec& actor) {
    return actor.state == ActorState::frozen && actor.freezer == FreezerVersion::v1;
  });
}

}  // namespace

Result<int> run_in_machine(const Case& scenario, const MachinePaths& paths, const std::function<int(Machine&)>& body) {
  if (auto refusal = unsupported(scenario)) return Error{ErrorCode::unsupported, *refusal + " is not there yet"};
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe");
  const UniqueFd report(ends[0]);
  UniqueFd report_end(ends[1]);
  const auto cgroup = MachineCgroup::create(CgroupTree::v2);
  if (!cgroup) std::fprintf(stderr, "vacate-lab: no cgroups in the machine: %s\n", cgroup.error().message.c_str());
  std::optional<MachineCgroup> freezer;
  if (needs_v1_freezer(scenario)) {
    auto made = MachineCgroup::create(CgroupTree::v1_freezer);
    if (!made) return made.error();
    freezer.emplace(*std::move(made));
  }
  auto self = pidfd_of_self();
  if (!self) return self.error();
  std::fflush(nullptr);
  const pid_t supervisor = fork();
  if (supervisor < 0) return system_error("fork");
  if (supervisor == 0) {
    close(report.get());
    die_with(*self);
    const MachineGroups groups{cgroup ? cgroup->path() : "", freezer ? freezer->path() : ""};
    if (auto done = supervise(scenario, paths, groups, report_end.get(), body); !done) {
      send(report_end.get(), done.error());
    }
    _exit(0);
  }
  report_end.reset();
  int status = 0;
  while (waitpid(supervisor, &status, 0) < 0 && errno == EINTR) {
  }
  fcntl(report.get(), F_SETFL, O_NONBLOCK);
  return receive(report.get(), status);
}

}  // namespace lab
