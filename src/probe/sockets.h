// SPDX-License-Identifier: Apache-2.0
// What sockets tell: who listens, and where descriptors are queued that nobody has received. The latter pin a GPU and
// are in no table (facts.md 3.1): what they are cannot be seen, only that they are there.
#pragma once

#include <vector>

#include "model/process.h"
#include "os/procfs.h"
#include "os/sock_diag.h"
#include "probe/walk.h"

namespace vacate {

/// Sets Process::listens of detailed processes that have a listening inet or inet6 stream socket. Gives those of which
/// that could not be read: they are taken to listen, which can only spare them.
[[nodiscard]] std::vector<pid_t> read_listeners(const ProcDirectory& root, const ChannelList& channels,
                                                std::vector<Process>& processes);

struct InFlight {
  pid_t pid = 0;  ///< a process that has the receiving socket
  int fd = -1;
  unsigned count = 0;
};
struct InFlightScan {
  std::vector<InFlight> queued;  ///< by pid and fd
  bool complete = true;          ///< false: more sockets than are asked in one scan, or one could not be asked
};
/// `unix_sockets` by inode: those of vacate's own network namespace with nothing to receive are passed over.
[[nodiscard]] InFlightScan find_in_flight(const ProcDirectory& root, const ChannelList& channels,
                                          const std::vector<UnixSocket>& unix_sockets);

}  // namespace vacate
