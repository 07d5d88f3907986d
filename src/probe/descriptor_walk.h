// SPDX-License-Identifier: Apache-2.0
// Walks the descriptor tables of processes, one after the other: statx for each descriptor, and a second question only
// for the few that could be of a GPU. Several of these work side by side, each with buffers and findings of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/device_nodes.h"
#include "model/process.h"
#include "os/procfs.h"
#include "probe/walk.h"

namespace vacate {

/// What everybody in a walk reads and nobody changes.
struct WalkContext {
  const ProcDirectory& root;
  const DeviceNodes& nodes;
  KernelFiles files;
  std::vector<std::uint64_t> watched;  ///< file systems (st_dev) of which every open file is noted
};

/// Notes in `walk` that `pid` could not be read; always false. One that has ended is no failure.
bool note_failure(Walk& walk, pid_t pid, const Error& error);

class DescriptorWalk {
 public:
  explicit DescriptorWalk(const WalkContext& context) : context_(context) {}

  /// All tables of one listed process; what they have is added to `found`.
  void walk(const Process& process, Walk& found);
  /// One descriptor that was found otherwise.
  void look_at(pid_t pid, pid_t tid, int fd, Walk& found);
  /// Tables of some threads, but that of their process.
  void walk_threads(pid_t pid, const std::vector<pid_t>& tids, Walk& found);

 private:
  struct Table {
    pid_t pid = 0;
    pid_t tid = 0;
    const ProcDirectory& descriptors;
    Walk& found;
  };
  void walk_all_threads(const ProcDirectory& process, const Process& about, Walk& found);
  void walk_threads(const ProcDirectory& tasks, const std::vector<pid_t>& tids, std::vector<pid_t> known_tables,
                    pid_t pid, Walk& found);
  /// False: the process is gone or must not be looked into.
  bool walk_table(const Result<ProcDirectory>& descriptors, pid_t pid, pid_t tid, Walk& found);
  void take_descriptor(const Table& table, const char* name, const FileIdentity& file);
  void take_node(const Table& table, const char* name, NodeKey node);
  [[nodiscard]] bool is_path_only(const Table& table, const char* name) const;
  void take_buffer(const Table& table, const char* name, const FileIdentity& file);
  void take_ring(const Table& table, const char* name);
  [[nodiscard]] std::optional<FdInfo> read_info(const Table& table, const char* name) const;
  [[nodiscard]] bool is_of_no_interest(const Table& table, const char* name) const;

  const WalkContext& context_;
  DirectoryReader reader_, tasks_;
};

}  // namespace vacate
