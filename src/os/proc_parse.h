// SPDX-License-Identifier: Apache-2.0
// Parsers of what /proc says, pure functions of bytes. The bytes are partly chosen by hostile processes (comm, paths):
// every parser takes anything, and answers "nothing" rather than a wrong value.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/process.h"

namespace vacate {

/// /proc/PID/stat, the fields that vacate needs (proc(5)).
struct ProcStat {
  pid_t pid = 0;
  std::string comm;
  char state = '?';
  pid_t ppid = 0, pgid = 0, sid = 0;
  std::uint32_t tty = 0;
  std::uint32_t flags = 0;  ///< PF_*
  unsigned threads = 0;
  std::uint64_t start_ticks = 0;

  /// Nothing of it runs any more, its other threads included.
  [[nodiscard]] bool has_ended() const noexcept { return state == 'X' || (state == 'Z' && threads <= 1); }
  [[nodiscard]] bool is_kernel_thread() const noexcept { return (flags & 0x00200000U) != 0; }  // PF_KTHREAD
  [[nodiscard]] bool is_exiting() const noexcept { return (flags & 0x4U) != 0; }               // PF_EXITING
};
/// comm may hold anything, ')' and line ends too: the fields start after the last ')'.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view text);

/// /proc/PID/status. A field that is missing (old kernel) or malformed is absent or empty.
struct ProcStatus {
  std::optional<uid_t> effective_uid;
  std::vector<pid_t> ns_pids;
  bool core_dumping = false;   ///< since 4.15
  bool filters_calls = false;  ///< seccomp
  std::optional<std::uint64_t> effective_capabilities;
  std::optional<std::uint64_t> locked_kib;  ///< VmLck; nothing for what has no memory of its own
  std::optional<std::uint64_t> pinned_kib;  ///< VmPin
};
/// Fields are looked for at line starts; the kernel escapes line ends in Name.
[[nodiscard]] ProcStatus parse_status_fields(std::string_view text);

/// /proc/PID/fdinfo/N. The name of a dma-buf is its owner's choice and can hold line ends, so the first line counts.
struct FdInfo {
  std::uint32_t flags = 0;              ///< open(2) flags, close-on-exec included
  unsigned scm_fds = 0;                 ///< descriptors queued on a UNIX socket, received by nobody yet (5.6)
  std::vector<std::string> user_files;  ///< files registered with an io_uring, as paths
  std::string exporter;                 ///< of a dma-buf: the driver whose buffer it is

  [[nodiscard]] bool is_path_only() const noexcept { return (flags & 010000000U) != 0; }  // O_PATH
  [[nodiscard]] bool close_on_exec() const noexcept { return (flags & 02000000U) != 0; }  // O_CLOEXEC
};
[[nodiscard]] std::optional<FdInfo> parse_fdinfo(std::string_view text);

/// One line of /proc/PID/maps.
struct MapsLine {
  std::string_view range;  ///< "7f00-7f01": the name in map_files
  std::uint64_t device =
      0;  ///< of the file system, as makedev(3) packs it: not the number of a device node (facts.md 3.1)
  std::uint64_t inode = 0;  ///< 0: anonymous
  std::string_view path;    ///< for telling apart only
};
[[nodiscard]] std::optional<MapsLine> parse_maps_line(std::string_view line);

/// The cgroup that tells most: of those that name a container or a batch job the first, else the v2 one unless it is
/// the root, else that of the v1 hierarchy name=systemd, memory or pids (facts.md 3.5). Empty: none.
[[nodiscard]] std::string parse_cgroup(std::string_view text);

/// Majors of the character device driver `name` in /proc/devices; a driver can have several.
[[nodiscard]] std::vector<std::uint32_t> parse_character_majors(std::string_view text, std::string_view name);

/// Inodes of the listening sockets in /proc/PID/net/tcp or tcp6, unsorted.
[[nodiscard]] std::vector<std::uint64_t> parse_listening_inodes(std::string_view text);

/// One frame of /proc/PID/stack.
struct KernelFrame {
  std::string function;
  std::string module;  ///< empty: the kernel's own
  bool operator==(const KernelFrame&) const = default;
};
/// The frames, topmost first, 64 at most. Lines that are no frame are left out.
[[nodiscard]] std::vector<KernelFrame> parse_kernel_stack(std::string_view text);
/// Whose code that is: that of the topmost frame that tells, for a driver also waits in functions of the kernel
/// (facts.md 2.7). Where FUSE or NFS is no module, its functions are told by their prefix.
[[nodiscard]] StuckIn classify_kernel_stack(const std::vector<KernelFrame>& frames) noexcept;

/// /proc/PID/loginuid; nothing: nobody logged in.
[[nodiscard]] std::optional<uid_t> parse_login_uid(std::string_view text) noexcept;

/// NUL-terminated words, as in cmdline. A title written over them (setproctitle) leaves one word and padding: trailing
/// empty words are dropped.
[[nodiscard]] std::vector<std::string> parse_words(std::string_view text);

/// How /proc is mounted, by its last line in mountinfo.
struct ProcMount {
  bool hides_processes = false;  ///< hidepid=2, invisible, ptraceable: other users' processes have no entry
  bool denies_access = false;    ///< hidepid=1, noaccess
};
[[nodiscard]] ProcMount parse_proc_mount(std::string_view mountinfo);
/// Mount point of the cgroup v2 hierarchy; empty: none.
[[nodiscard]] std::string parse_cgroup2_mount(std::string_view mountinfo);

/// The inode in "pid:[4026531836]" or "socket:[17]".
[[nodiscard]] std::optional<std::uint64_t> parse_bracketed_inode(std::string_view link);

}  // namespace vacate
