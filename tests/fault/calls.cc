// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

namespace fault {

const std::vector<CallKind>& call_kinds() {
  static const std::vector<CallKind> kKinds = {
      {SYS_openat, "openat", Names::path_at, {EMFILE, ENOMEM, EACCES, EIO, EINTR, ENFILE}},
      {SYS_read, "read", Names::descriptor, {EINTR, EIO, ENOMEM}},
      {SYS_pread64, "pread64", Names::descriptor, {EIO, ENOMEM}},
      {SYS_write, "write", Names::descriptor, {EINTR, EIO, ENOSPC, EPIPE}},
      {SYS_writev, "writev", Names::descriptor, {EINTR, EIO}},
      {SYS_getdents64, "getdents64", Names::descriptor, {ENOMEM, EIO}},
      {SYS_statx, "statx", Names::path_at, {ENOMEM, EACCES, EIO}},
      {SYS_newfstatat, "newfstatat", Names::path_at, {ENOMEM, EACCES}},
      {SYS_readlinkat, "readlinkat", Names::path_at, {ENOMEM, EACCES, EIO}},
      {SYS_fstatfs, "fstatfs", Names::descriptor, {ENOMEM, EIO}},
      {SYS_lseek, "lseek", Names::descriptor, {EINVAL}},
      {SYS_flock, "flock", Names::descriptor, {EINTR, ENOLCK}},
      {SYS_fcntl, "fcntl", Names::descriptor, {EMFILE, EAGAIN}},
      {SYS_fsync, "fsync", Names::descriptor, {EIO, ENOSPC}},
      {SYS_mkdirat, "mkdirat", Names::path_at, {ENOSPC, EROFS}},
      {SYS_renameat2, "renameat2", Names::path_at, {ENOSPC, EACCES}},
      {SYS_unlinkat, "unlinkat", Names::path_at, {EACCES, EROFS}},
      {SYS_clone, "clone", Names::nothing, {EAGAIN, ENOMEM}},
      {SYS_pipe2, "pipe2", Names::nothing, {EMFILE, ENFILE}},
      {SYS_eventfd2, "eventfd2", Names::nothing, {EMFILE, ENOMEM}},
      {SYS_signalfd4, "signalfd4", Names::nothing, {EMFILE, ENOMEM}},
      {SYS_memfd_create, "memfd_create", Names::nothing, {EMFILE, ENOMEM}},
      {SYS_dup3, "dup3", Names::descriptor, {EMFILE, EINTR}},
      {SYS_socket, "socket", Names::nothing, {EMFILE, ENOMEM, EACCES}},
      {SYS_socketpair, "socketpair", Names::nothing, {EMFILE, ENFILE, ENOMEM}},
      {SYS_connect, "connect", Names::descriptor, {EINTR, EAGAIN, ECONNREFUSED}},
      {SYS_sendto, "sendto", Names::descriptor, {EINTR, ENOMEM, EPIPE}},
      {SYS_recvfrom, "recvfrom", Names::descriptor, {EINTR, ENOMEM, ECONNRESET}},
      {SYS_sendmsg, "sendmsg", Names::descriptor, {EINTR, ENOMEM, EPIPE}},
      {SYS_recvmsg, "recvmsg", Names::descriptor, {EINTR, ENOMEM, ECONNRESET}},
      {SYS_ppoll, "ppoll", Names::nothing, {EINTR, ENOMEM}},
      {SYS_wait4, "wait4", Names::nothing, {EINTR}},
      {SYS_waitid, "waitid", Names::nothing, {EINTR}},
      {SYS_kcmp, "kcmp", Names::nothing, {EPERM, ENOMEM}},
      {SYS_pidfd_open, "pidfd_open", Names::nothing, {EMFILE, ENOMEM}},
      {SYS_pidfd_send_signal, "pidfd_send_signal", Names::descriptor, {EPERM, ENOMEM}},
      {SYS_mmap, "mmap", Names::nothing, {ENOMEM}},
      {SYS_mremap, "mremap", Names::nothing, {ENOMEM}},
      {SYS_munmap, "munmap", Names::nothing, {ENOMEM}},
      {SYS_prlimit64, "prlimit64", Names::nothing, {EPERM}},
      {SYS_uname, "uname", Names::nothing, {EFAULT}},
      {SYS_chdir, "chdir", Names::path, {EACCES}},
      {SYS_ioctl, "ioctl", Names::descriptor, {EIO, EINTR}},
#ifdef SYS_open  // of old architectures only
      {SYS_open, "open", Names::path, {EMFILE, ENOMEM, EACCES, EIO}},
      {SYS_stat, "stat", Names::path, {ENOMEM, EACCES}},
      {SYS_access, "access", Names::path, {ENOMEM, EACCES}},
      {SYS_readlink, "readlink", Names::path, {ENOMEM, EACCES, EIO}},
      {SYS_mkdir, "mkdir", Names::path, {ENOSPC, EROFS}},
      {SYS_rename, "rename", Names::path, {ENOSPC, EACCES}},
      {SYS_unlink, "unlink", Names::path, {EACCES, EROFS}},
      {SYS_poll, "poll", Names::nothing, {EINTR, ENOMEM}},
      {SYS_dup2, "dup2", Names::descriptor, {EMFILE, EINTR}},
      {SYS_fork, "fork", Names::nothing, {EAGAIN, ENOMEM}},
      {SYS_vfork, "vfork", Names::nothing, {EAGAIN, ENOMEM}},
#endif
  };
  return kKinds;
}

const CallKind* find_kind(long number) {
  const auto& kinds = call_kinds();
  const auto at = std::find_if(kinds.begin(), kinds.end(), [&](const CallKind& kind) { return kind.number == number; });
  return at == kinds.end() ? nullptr : &*at;
}

const CallKind* find_kind(std::string_view name) {
  const auto& kinds = call_kinds();
  const auto at = std::find_if(kinds.begin(), kinds.end(), [&](const CallKind& kind) { return kind.name == name; });
  return at == kinds.end() ? nullptr : &*at;
}

}  // namespace fault
