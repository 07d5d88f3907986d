// SPDX-License-Identifier: Apache-2.0
// Pipe and socket-pair ends of candidates and who has the other end: the proof that an owner died (facts.md 3.7). An
// empty other end is claimed only if the kernel agrees: an end in flight, hidden or in another user's hands is in no
// table that vacate can see.
#pragma once

#include <vector>

#include "model/process.h"
#include "os/procfs.h"
#include "os/sock_diag.h"
#include "probe/walk.h"

namespace vacate {

struct PipeInputs {
  const ProcDirectory& root;
  const ChannelList& channels;                  ///< of every process
  const std::vector<UnixSocket>& unix_sockets;  ///< by inode; empty where the kernel does not tell
  bool everybody_seen = true;                   ///< no process's descriptors were hidden
  double boot_time = 0;                         ///< see DetailReader
};

/// Fills Process::pipes of every detailed process. Gives those of which an end could not be asked about; whoever may
/// have the other end of a pipe is counted as having it.
[[nodiscard]] std::vector<pid_t> read_pipes(const PipeInputs& inputs, std::vector<Process>& processes);

}  // namespace vacate
