// SPDX-License-Identifier: Apache-2.0
// States that somebody else puts a process into: a tracer, the freezer of its cgroup.
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/actor/signals.h"
#include "lab/actor/title.h"
#include "lab/machine/files.h"
#include "lab/machine/machine_impl.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

/// Stops `target` and lets nothing but KILL reach it, for as long as it lives.
[[noreturn]] void be_tracer(pid_t target) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  remove_handlers();
  unblock_signals();
  setsid();
  close_range(0, ~0U, 0);
  set_comm("tracer");
  (void)set_cmdline({"tracer"});  // cosmetic
  if (ptrace(PTRACE_SEIZE, target, nullptr, nullptr) != 0 || ptrace(PTRACE_INTERRUPT, target, nullptr, nullptr) != 0)
    _exit(1);
  for (int status = 0;;) {
    if (waitpid(target, &status, __WALL) != target) continue;  // EINTR
    if (!WIFSTOPPED(status)) _exit(0);
  }
}

/// Path of the process's cgroup below /sys/fs/cgroup; "/" where it has none of its own.
std::string cgroup_of(pid_t pid) {
  const std::string table = read_file(fmt::format("/proc/{}/cgroup", pid));
  for (const std::string_view line : vacate::split(table, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return "/";
}

Result<std::string> group_to_freeze(const Slot& slot, bool has_cgroups) {
  std::string path = cgroup_of(slot.pid.load());
  if (has_cgroups && path != "/") return path;
  return Error{
      ErrorCode::unsupported,
      fmt::format("actor '{}': state \"frozen\" needs a cgroup of cgroup v2, its own or an ancestor's", slot.name)};
}

}  // namespace

bool can_dump() {
  const std::string pattern = read_file("/proc/sys/kernel/core_pattern");
  // A plain name is a file in the process's own directory; a pipe, a socket or a path is not the machine's.
  return !pattern.empty() && std::string_view("|@/\n").find(pattern.front()) == std::string_view::npos;
}

Result<void> Machine::Impl::await_dump(std::uint32_t index, Deadline deadline) const {
  const Slot& slot = board.slot(index);
  // There is no event for that, hence the short looks.
  const auto dumps = [&slot] {
    const std::string folder = fmt::format("/proc/{}", slot.pid.load());
    return read_file(folder + "/status").find("CoreDumping:\t1") != std::string::npos;
  };
  while (!dumps()) {
    if (exited(index)) return Error{ErrorCode::io, fmt::format("'{}' ended without a dump", slot.name)};
    if (deadline.passed()) return Error{ErrorCode::timed_out, fmt::format("'{}' does not dump", slot.name)};
    pollfd end{pidfd(index), POLLIN, 0};
    poll(&end, 1, 1);
  }
  return {};
}

Result<void> Machine::Impl::trace(std::uint32_t index) const {
  const pid_t target = board.slot(index).pid.load();
  const SignalsBlocked blocked;
  const pid_t pid = fork();
  if (pid < 0) return system_error("a tracer");
  if (pid == 0) be_tracer(target);
  return {};
}

Result<void> Machine::Impl::freeze(std::uint32_t index, Deadline deadline) const {
  const Slot& slot = board.slot(index);
  const auto path = group_to_freeze(slot, has_cgroups);
  if (!path) return path.error();
  const std::string folder = "/sys/fs/cgroup" + *path;
  if (auto written = write_file(folder + "/cgroup.freeze", "1"); !written) return written;
  const UniqueFd events(open((folder + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  for (;;) {
    std::array<char, 256> text{};
    if (!events || pread(events.get(), text.data(), text.size() - 1, 0) <= 0) return system_error(folder);
    if (std::string_view(text.data()).find("frozen 1") != std::string_view::npos) return {};
    if (deadline.passed()) return Error{ErrorCode::timed_out, fmt::format("'{}' does not freeze", slot.name)};
    pollfd change{events.get(), POLLPRI, 0};
    poll(&change, 1, deadline.poll_timeout_ms());
  }
}

Result<void> Machine::Impl::freeze_by_v1(std::uint32_t index, Deadline deadline) const {
  const Slot& slot = board.slot(index);
  const auto path = group_to_freeze(slot, has_cgroups);
  if (!path) return path.error();
  const std::string folder = kV1Freezer + *path;
  if (auto made = make_directories(folder); !made) return made;
  const std::string members = read_file("/sys/fs/cgroup" + *path + "/cgroup.procs");
  for (const std::string_view pid : vacate::split(members, '\n')) {
    if (pid.empty()) continue;
    if (auto moved = write_file(folder + "/cgroup.procs", pid); !moved) return moved;
  }
  if (auto written = write_file(folder + "/freezer.state", "FROZEN"); !written) return written;
  // Version 1 tells nobody when it is done, hence the short looks.
  const auto is_frozen = [&folder] { return read_file(folder + "/freezer.state").starts_with("FROZEN"); };
  while (!is_frozen()) {
    if (deadline.passed()) return Error{ErrorCode::timed_out, fmt::format("'{}' does not freeze", slot.name)};
    pollfd end{pidfd(index), POLLIN, 0};
    poll(&end, 1, 1);
  }
  return {};
}

}  // namespace lab
