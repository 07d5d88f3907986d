// SPDX-License-Identifier: Apache-2.0
// One walk over every process and every descriptor table: who has a GPU node open, and who has which pipe or socket.
// Asks statx and reads fdinfo only; maps, cmdline and environ are not touched (facts.md 3.2). Decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device_nodes.h"
#include "model/process.h"
#include "os/procfs.h"
#include "probe/channels.h"

namespace vacate {

/// An open descriptor of a GPU node. `tid` differs from `pid` for a table of a thread's own.
struct NodeHit {
  pid_t pid = 0;
  pid_t tid = 0;
  int fd = -1;
  NodeKey node;
};

/// An open descriptor of a file on a watched file system. One of a path only (O_PATH) counts as well: through it the
/// file can be opened.
struct FileHit {
  pid_t pid = 0;
  pid_t tid = 0;
  int fd = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// A GPU node among the files registered with an io_uring: open, yet in nobody's table (facts.md 3.1).
struct RingFile {
  pid_t pid = 0;
  int fd = -1;
  std::string path;
};

/// Numbers of the kernel's own file systems, found out by making one file of each.
struct KernelFiles {
  std::uint64_t pipe_device = 0;
  std::uint64_t anonymous_device = 0;
  std::uint64_t anonymous_inode = 0;  ///< the one that all but the security-labelled ones share
  bool known = false;
  [[nodiscard]] static KernelFiles read();
};

struct Walk {
  std::vector<Process> processes;  ///< the first block of each, by pid
  std::vector<NodeHit> hits;
  ChannelList channels;
  std::vector<RingFile> rings;
  std::vector<FileHit> files;
  std::vector<pid_t> denied;                          ///< descriptors not readable for want of permission
  std::vector<std::pair<pid_t, std::string>> failed;  ///< not readable for another reason (EMFILE, ENOMEM)
};

class Walker {
 public:
  /// `watched`: file systems (st_dev) of which every open file is noted.
  Walker(const ProcDirectory& root, const DeviceNodes& nodes, std::uint64_t pid_namespace,
         std::vector<std::uint64_t> watched = {})
      : root_(root),
        nodes_(nodes),
        files_(KernelFiles::read()),
        pid_namespace_(pid_namespace),
        watched_(std::move(watched)) {}

  /// Stat of every process there is. An error: /proc could not be listed to its end.
  [[nodiscard]] Result<void> list_processes();
  /// Stat of one that came later. Nothing happens if it is known or gone.
  void add_process(pid_t pid);
  /// Descriptors of one listed process, all its tables.
  void walk_descriptors(Process& process);
  void walk_all_descriptors();

  [[nodiscard]] Walk& result() noexcept { return walk_; }

 private:
  struct Table {
    pid_t pid = 0;
    pid_t tid = 0;
  };
  [[nodiscard]] std::optional<Process> read_process(pid_t pid);
  void walk_threads(const ProcDirectory& process, const Process& about, bool leader_has_table);
  /// False: the process is gone or must not be looked into.
  bool walk_table(const ProcDirectory& owner, Table table);
  void take_descriptor(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table, const char* name,
                       const FileIdentity& file);
  void take_buffer(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table, const char* name,
                   const FileIdentity& file);
  void take_ring(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table, const char* name);
  [[nodiscard]] bool is_of_no_interest(const ProcDirectory& descriptors, const char* name) const;
  [[nodiscard]] std::optional<FdInfo> read_info(const ProcDirectory& owner, Table table, const char* name);
  /// Always false. One that has ended is no failure.
  bool note_failure(pid_t pid, const Error& error);

  const ProcDirectory& root_;
  const DeviceNodes& nodes_;
  KernelFiles files_;
  std::uint64_t pid_namespace_;
  std::vector<std::uint64_t> watched_;
  DirectoryReader reader_, tasks_;
  Walk walk_;
};

/// "fdinfo/7" and the like.
[[nodiscard]] std::string descriptor_info_name(const char* fd);

}  // namespace vacate
