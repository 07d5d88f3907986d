// SPDX-License-Identifier: Apache-2.0
#include "os/process_ref.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

Result<std::uint64_t> read_start_ticks(pid_t pid) {
  const auto root = ProcDirectory::open_root();
  if (!root) return root.error();
  const auto process = root->open(pid);
  if (!process) return process.error();
  const auto stat = process->stat();
  if (!stat) return stat.error();
  return stat->start_ticks;
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
  const auto start = read_start_ticks(pid);
  if (!start) return start.error().within("process " + std::to_string(pid));
  ProcessRef ref(std::move(pidfd), ProcessKey{pid, *start, 0, own_pid_namespace()});
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
