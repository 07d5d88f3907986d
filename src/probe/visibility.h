// SPDX-License-Identifier: Apache-2.0
// Collects what a scan could not see, in words for people and codes for scripts (design.md rule 9). Says everything
// once; decides nothing about what it means.
#pragma once

#include <vector>

#include "model/scan_use.h"
#include "model/snapshot.h"
#include "os/procfs.h"
#include "probe/mappings.h"
#include "probe/sockets.h"
#include "probe/walk.h"

namespace vacate {

class BlindSpots {
 public:
  void add(const std::vector<BlindSpot>& spots);
  /// /proc could not be listed to its end.
  void add_unlisted(const Error& error);
  /// Descriptors and mappings that could not be read. `root`: the caller should have been able to.
  void add_unreadable(const Walk& walk, const Mappings& mappings, bool root);
  /// hidepid, and a pid namespace that is not the host's.
  void add_hiding(const ProcDirectory& proc, const Snapshot& snapshot);
  void add_unpinned(pid_t pid, const Error& error);
  /// What stands behind a process that could hold a GPU, or is related to one that does.
  void add_undetailed(pid_t pid, const Error& error);
  /// Ends of pipes and sockets by which it would be proven that an owner died.
  void add_unread_channels(std::vector<pid_t> pids);
  void add_unread_listeners(std::vector<pid_t> pids);
  void add_unread_sockets(const Error& error);
  /// The way of looking that was asked for was not gone to its end; another was.
  void add_other_scan(const ScanUse& use);
  /// Something in /dev that may be a node of the driver.
  void add_unread_nodes();
  /// Which processes are vacate's own ancestors.
  void add_unread_caller(const Error& error);
  void add_stuck_argv(pid_t pid);
  void add_hidden(pid_t pid);
  /// Who shares whose open files could not be found out to the end.
  void add_unknown_clients();
  void add_in_flight(const InFlightScan& scan, const std::vector<Process>& processes);
  void add_rings(const std::vector<RingFile>& rings);

  /// No process's descriptors were hidden so far.
  [[nodiscard]] bool everybody_seen() const noexcept { return all_references_; }
  /// Everything, sorted.
  [[nodiscard]] Visibility take();

 private:
  std::vector<BlindSpot> spots_;
  bool all_references_ = true;
};

}  // namespace vacate
