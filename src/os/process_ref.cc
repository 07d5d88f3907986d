// SPDX-License-Identifier: Apache-2.0
#include "os/process_ref.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "os/procfs.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

/// Inode of a pidfd where it is one of its own (pidfs, 6.9); before that all pidfds share the anonymous inode: 0.
std::uint64_t pidfd_inode(int pidfd) {
  static constexpr auto kPidfsMagic = 0x50494446;
  struct statfs system {};
  if (fstatfs(pidfd, &system) != 0 || system.f_type != kPidfsMagic) return 0;
  const auto identity = read_identity(pidfd);
  return identity ? identity->inode : 0;
}

/// Field 28 of proc(5), startstack; 0 where the kernel does not tell it. Fields start at 3 after the last ')'.
std::uint64_t stack_start_of(std::string_view stat) {
  static constexpr std::size_t kField = 28 - 3;
  const auto close = stat.rfind(')');
  if (close == std::string_view::npos || close + 2 > stat.size()) return 0;
  const auto fields = split(trim(stat.substr(close + 1)), ' ');
  return fields.size() > kField ? parse_unsigned(fields[kField]).value_or(0) : 0;
}

struct Facts {
  std::uint64_t start_ticks = 0;
  ProgramImage image;
};

Result<Facts> read_facts(pid_t pid) {
  const auto root = ProcDirectory::open_root();
  if (!root) return root.error();
  const auto process = root->open(pid);
  if (!process) return process.error();
  const auto text = process->read("stat", 4096);
  if (!text) return text.error();
  const auto stat = parse_stat(*text);
  if (!stat) return Error{ErrorCode::malformed, "/proc/PID/stat is not as proc(5) says"};
  Facts facts{stat->start_ticks, {0, 0, stack_start_of(*text)}};
  if (const auto exe = process->identity("exe")) {
    facts.image.device = exe->device;
    facts.image.inode = exe->inode;
  }
  return facts;
}

Error gone(pid_t pid) { return Error{ErrorCode::gone, "process " + std::to_string(pid) + " has ended"}; }

}  // namespace

Result<ProcessRef> ProcessRef::open(pid_t pid) {
  UniqueFd pidfd(open_pidfd(pid));
  if (!pidfd) {
    const int number = errno;
    if (number == ENOSYS) return Error{ErrorCode::unsupported, "pidfd_open: needs Linux 5.3"};
    // A thread that leads no process: EINVAL, ENOENT since 6.9.
    if (number == EINVAL || number == ENOENT || number == ESRCH) return gone(pid);
    return system_error("process " + std::to_string(pid) + ": pidfd_open", number);
  }
  const auto facts = read_facts(pid);
  if (!facts) return facts.error().within("process " + std::to_string(pid));
  ProcessRef ref(std::move(pidfd), ProcessKey{pid, facts->start_ticks, 0, own_pid_namespace()});
  ref.image_ = facts->image;
  ref.key_.pidfd_inode = pidfd_inode(ref.pidfd_.get());
  // Alive after the read: the start time is that of the process behind the descriptor, not of a later bearer of the
  // number.
  if (auto alive = ref.prove_alive(); !alive) return alive.error();
  return ref;
}

bool ProcessRef::exited() const noexcept {
  pollfd wait{pidfd_.get(), POLLIN, 0};
  return poll(&wait, 1, 0) == 1 && (wait.revents & (POLLIN | POLLHUP)) != 0;
}

Result<void> ProcessRef::prove_alive() const {
  // Signal 0 first: a reaped process says ESRCH at once. A zombie takes it, but its descriptor is readable.
  if (signal_pidfd(pidfd_.get(), 0) != 0 && errno == ESRCH) return gone(key_.pid);
  if (exited()) return gone(key_.pid);
  return {};
}

bool ProcessRef::runs_another_program() const {
  const auto now = read_facts(key_.pid);
  // Alive after the read, it was about this process; else there is nobody left to be mistaken.
  if (!now || !prove_alive()) return false;
  const auto& image = now->image;
  const bool has_none = image.inode == 0 && image.stack_start == 0;  // a leader that has ended, or is about to
  if (has_none) return false;
  const bool other_file = image.device != image_.device || image.inode != image_.inode;
  const bool other_stack = image.stack_start != 0 && image_.stack_start != 0 && image.stack_start != image_.stack_start;
  return other_file || other_stack;
}

Result<void> ProcessRef::send_signal(int signal) const {
  if (exited()) return gone(key_.pid);
  if (signal_pidfd(pidfd_.get(), signal) != 0) {
    if (errno == ESRCH) return gone(key_.pid);
    return system_error("signal to process " + std::to_string(key_.pid));
  }
  return {};
}

Result<ProcessKey> PinSet::pin(pid_t pid) {
  const auto known = pins_.find(pid);
  if (known != pins_.end() && !known->second.exited()) return known->second.key();
  auto ref = ProcessRef::open(pid);
  if (!ref) return ref.error();
  const ProcessKey key = ref->key();
  pins_.insert_or_assign(pid, *std::move(ref));
  return key;
}

const ProcessRef* PinSet::find(const ProcessKey& key) const noexcept {
  const auto found = pins_.find(key.pid);
  return found != pins_.end() && found->second.key() == key ? &found->second : nullptr;
}

}  // namespace vacate
