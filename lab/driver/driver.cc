// SPDX-License-Identifier: Apache-2.0
// Mounts the driver's directory and starts and ends its server process.
#include "lab/driver/driver.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "lab/driver/fuse_server.h"

namespace lab {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

namespace {

/// Mounts by hand: libfuse's own way may call a set-uid helper and writes to /etc/mtab.
Result<UniqueFd> mount_connection(const std::string& mount_dir) {
  UniqueFd connection(open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!connection) return system_error("open /dev/fuse");
  const std::string options = fmt::format("fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
                                          connection.get(), getuid(), getgid());
  if (mount("lab-gpu-driver", mount_dir.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return system_error(fmt::format("mount FUSE on {}", mount_dir));
  }
  return connection;
}

void unmount(const std::string& mount_dir) noexcept {
  // FORCE aborts the connection even if a stray copy of its descriptor is left somewhere, so that nobody stays stuck in
  // it.
  umount2(mount_dir.c_str(), MNT_FORCE | MNT_DETACH);
}

/// Everything from the parent but standard error and the descriptors in `keep`, which may not be standard ones.
void drop_descriptors(std::pair<int, int> keep) {
  const auto [low, high] = std::minmax(keep.first, keep.second);
  const auto close_between = [](int first, int last) {
    if (first <= last) syscall(SYS_close_range, static_cast<unsigned>(first), static_cast<unsigned>(last), 0U);
  };
  close_between(STDERR_FILENO + 1, low - 1);
  close_between(low + 1, high - 1);
  syscall(SYS_close_range, static_cast<unsigned>(high) + 1U, ~0U, 0U);
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  if (null > STDERR_FILENO) close(null);
}

/// Signals meant for the lab's terminal or its parent must not change the driver.
void detach_from_parent() {
  setsid();
  for (int number = 1; number < NSIG; ++number) static_cast<void>(std::signal(number, SIG_DFL));
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  prctl(PR_SET_NAME, "lab-gpu-driver");
  // One descriptor for each pid namespace that a client was made in, however many.
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
}

[[noreturn]] void run_server(const DriverConfig& config, ProcessTable processes, UniqueFd connection, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it was gone before it could be tied to us
  detach_from_parent();
  drop_descriptors({connection.get(), processes.proc_fd()});
  if (chdir("/") != 0) _exit(EXIT_FAILURE);
  FuseServer server(DriverCore(config, std::move(processes)), getuid(), getgid());
  const bool served = server.run(std::move(connection));
  _exit(served ? EXIT_SUCCESS : EXIT_FAILURE);
}

Result<UniqueFd> start_server(const DriverConfig& config, ProcessTable processes, UniqueFd connection) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork the driver");
  if (pid == 0) run_server(config, std::move(processes), std::move(connection), parent);
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    // Without the connection, which only the server has after our return, it ends by itself at the unmount.
    return system_error("open the driver's pidfd");
  }
  return pidfd;
}

}  // namespace

Result<DriverServer> DriverServer::start(const DriverConfig& config, const std::string& mount_dir) {
  auto completed = complete(config);
  if (!completed) return completed.error().within("driver");
  auto processes = ProcessTable::open();
  if (!processes) return processes.error().within("driver");
  auto connection = mount_connection(mount_dir);
  if (!connection) return connection.error().within("driver");
  auto pidfd = start_server(*completed, std::move(*processes), std::move(*connection));
  if (!pidfd) {
    unmount(mount_dir);
    return pidfd.error().within("driver");
  }
  DriverServer server(mount_dir, std::move(*pidfd));
  // Waits for the first answer; fails at once if the server has ended, for that ends the connection.
  auto state = read_driver_state(mount_dir);
  if (!state) return state.error().within("driver does not answer");
  return server;
}

DriverServer& DriverServer::operator=(DriverServer&& other) noexcept {
  if (this != &other) {
    stop();
    mount_dir_ = std::move(other.mount_dir_);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void DriverServer::stop() noexcept {
  if (!pidfd_) return;
  syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0U);
  siginfo_t ended{};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &ended, WEXITED) != 0 && errno == EINTR) {
  }
  unmount(mount_dir_);
  pidfd_.reset();
}

}  // namespace lab
