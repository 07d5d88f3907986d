// SPDX-License-Identifier: Apache-2.0
// See conductor.h.
#include "lab/machine/conductor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/unique_fd.h"
#include "lab/actor/title.h"
#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"
#include "lab/machine/root.h"

namespace lab {
namespace {

using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

Board reaper_board;  // for the handler, which has no other way to find it

void on_ended_child(int /*sig*/) {
  const int saved = errno;
  reap_children(reaper_board);
  errno = saved;
}

}  // namespace

Result<void> Conductor::join_cgroups() const {
  for (const std::string& group : {setup_.cgroup, setup_.v1_freezer}) {
    if (group.empty()) continue;
    const UniqueFd procs(open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs || write(procs.get(), "0", 1) != 1) return system_error("joining the machine's cgroup");
  }
  if (setup_.cgroup.empty() && setup_.v1_freezer.empty()) return {};
  if (unshare(CLONE_NEWCGROUP) != 0) return system_error("cgroup namespace");
  return {};
}

Result<void> Conductor::mount_cgroups() const {
  constexpr auto kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const std::string cgroups = setup_.root + "/sys/fs/cgroup";
  if (!setup_.cgroup.empty() && mount("cgroup2", cgroups.c_str(), "cgroup2", kFlags, nullptr) != 0)
    return system_error("cgroup tree");
  if (setup_.v1_freezer.empty()) return {};
  const std::string freezer = setup_.root + kV1Freezer;
  if (auto made = make_directories(freezer); !made) return made;
  if (mount("cgroup", freezer.c_str(), "cgroup", kFlags, "freezer") != 0) return system_error("freezer of cgroup v1");
  return {};
}

/// A mount namespace of its own: the supervisor and the driver's server keep the host's root and its /proc.
Result<void> Conductor::enter() {
  if (auto joined = join_cgroups(); !joined) return joined;
  if (unshare(CLONE_NEWNS) != 0) return system_error("mount namespace");
  if (auto closed = make_mounts_private(); !closed) return closed;
  const char* options = setup_.scenario.machine.hidepid ? kHidePid : nullptr;
  const std::string proc = setup_.root + "/proc";
  if (mount("proc", proc.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0)
    return system_error("procfs");
  if (auto shown = show_proc_driver(proc, setup_.driver); !shown) return shown;
  if (auto mounted = mount_cgroups(); !mounted) return mounted;
  return pivot_into(setup_.root);
}

void Conductor::become_init() const {
  setsid();
  rlimit cores{};
  getrlimit(RLIMIT_CORE, &cores);
  cores.rlim_cur = 0;  // a dump would be somebody writing for long; who is to do that may lift it again
  setrlimit(RLIMIT_CORE, &cores);
  set_comm("init");
  (void)set_cmdline({"/sbin/init"});  // cosmetic
  reaper_board = setup_.board;
  struct sigaction action {};
  action.sa_handler = on_ended_child;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCHLD, &action, nullptr);
}

Result<int> Conductor::conduct(const std::function<int(Machine&)>& body) {
  if (auto entered = enter(); !entered) return entered.error();
  become_init();
  auto impl = std::unique_ptr<Machine::Impl>(
      new Machine::Impl{setup_.scenario, setup_.board, !setup_.cgroup.empty(), {}, {}, {}, 1});
  if (auto started = impl->start_shell(); !started) return started.error().within("the machine's shell");
  if (auto started = impl->start_units(); !started) return started.error().within("the service manager");
  if (auto started = impl->start_helpers(); !started) return started.error().within("the control daemon of MPS");
  Machine machine(std::move(impl));
  return body(machine);
}

void Conductor::idle() {
  setsid();
  close_range(0, ~0U, 0);
  (void)set_cmdline({});  // cosmetic, and only while there is a /proc
  if (!join_cgroups() || unshare(CLONE_NEWNS) != 0 || !make_mounts_private() || !pivot_into(setup_.root)) _exit(1);
  set_comm("kthreadd");
  for (;;) pause();
}

}  // namespace lab
