// SPDX-License-Identifier: Apache-2.0
// One walk over every process and every descriptor table: who has a GPU node open, and who has which pipe or socket.
// Asks statx and reads fdinfo only; maps, cmdline and environ are not touched (facts.md 3.2). Decides nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  /// Adds what `part` has behind what is here.
  void take(Walk&& part);
};

struct WalkContext;

class Walker {
 public:
  /// `watched`: file systems (st_dev) of which every open file is noted.
  Walker(const ProcDirectory& root, const DeviceNodes& nodes, std::uint64_t pid_namespace,
         std::vector<std::uint64_t> watched = {});
  ~Walker();

  /// Stat of every process there is. An error: /proc could not be listed to its end.
  [[nodiscard]] Result<void> list_processes();
  /// Stat of one that came later, and its descriptors. Nothing happens if it is known or gone.
  void add_process(pid_t pid);
  /// Descriptors of every listed process, all their tables. Runs on several threads where that is worth it: the caller
  /// forks nothing meanwhile. The result is in the order of processes all the same.
  void walk_all_descriptors();
  /// One descriptor that was found otherwise and that numbers alone do not tell.
  void look_at_descriptor(pid_t pid, pid_t tid, int fd);
  /// Adds all that a listed process has open.
  void look_at_process(pid_t pid);
  /// Adds what some threads of a process have open, but for tables that are its own.
  void look_at_threads(pid_t pid, const std::vector<pid_t>& tids);

  [[nodiscard]] Walk& result() noexcept { return walk_; }
  [[nodiscard]] const Walk& result() const noexcept { return walk_; }
  [[nodiscard]] const ProcDirectory& root() const noexcept;
  [[nodiscard]] const KernelFiles& kernel_files() const noexcept;

 private:
  [[nodiscard]] std::optional<Process> read_process(pid_t pid, Walk& failures) const;
  /// Gives workers the numbers below `count`, and somewhere to put what they find: the parts become one.
  template <class Worker>
  void do_all(std::size_t count, std::size_t at_a_time, const Worker& make_worker);

  std::unique_ptr<const WalkContext> context_;
  std::uint64_t pid_namespace_;
  Walk walk_;
};

}  // namespace vacate
