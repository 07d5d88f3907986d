// SPDX-License-Identifier: Apache-2.0
#include "probe/visibility.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/find_by_pid.h"

namespace vacate {
namespace {

std::string processes(std::size_t n) { return n == 1 ? "1 process" : fmt::format("{} processes", n); }

/// "process 12", "processes 12, 13, 14 and 5 more".
std::string list_pids(std::vector<pid_t> pids) {
  static constexpr std::size_t kMostNamed = 5;
  std::sort(pids.begin(), pids.end());
  std::string text = pids.size() == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < std::min(pids.size(), kMostNamed); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", pids[i]);
  if (pids.size() > kMostNamed) text += fmt::format(" and {} more", pids.size() - kMostNamed);
  return text;
}

}  // namespace

void BlindSpots::add(const std::vector<BlindSpot>& spots) { spots_.insert(spots_.end(), spots.begin(), spots.end()); }

void BlindSpots::add_unlisted(const Error& error) {
  spots_.push_back({"proc-unlisted", error.message});
  all_references_ = false;
}

void BlindSpots::add_unreadable(const Walk& walk, const Mappings& mappings, bool root) {
  if (!walk.denied.empty()) {
    // To root it is a few, and which ones matters; to others it is everybody else's.
    spots_.push_back({root ? "fd-denied" : "not-root",
                      root ? "the descriptors cannot be read: " + list_pids(walk.denied)
                           : fmt::format("the descriptors of {} cannot be read", processes(walk.denied.size()))});
  }
  if (!walk.failed.empty())
    spots_.push_back(
        {"fd-failed", fmt::format("process {}: {}", walk.failed.front().first, walk.failed.front().second)});
  // Who denies descriptors denies maps too: said once.
  std::vector<pid_t> maps_only;
  for (const pid_t pid : mappings.denied)
    if (std::find(walk.denied.begin(), walk.denied.end(), pid) == walk.denied.end()) maps_only.push_back(pid);
  if (!maps_only.empty()) spots_.push_back({"maps-denied", "the mappings cannot be read: " + list_pids(maps_only)});
  if (!mappings.stuck.empty())
    spots_.push_back({"maps-timeout", "reading the mappings blocks: " + list_pids(mappings.stuck)});
  if (!mappings.failed.empty())
    spots_.push_back({"maps-failed", "the mappings cannot be read: " + list_pids(mappings.failed)});
  all_references_ = all_references_ && walk.denied.empty() && walk.failed.empty() && maps_only.empty() &&
                    mappings.denied.empty() && mappings.stuck.empty() && mappings.failed.empty();
}

void BlindSpots::add_hiding(const ProcDirectory& proc, const Snapshot& snapshot) {
  const auto mounts = proc.read("self/mountinfo");
  if (!mounts && !snapshot.caller.root)
    spots_.push_back({"hidepid", "whether /proc hides processes cannot be read: " + mounts.error().message});
  const auto how = mounts ? parse_proc_mount(*mounts) : ProcMount{};
  if (how.hides_processes && !snapshot.caller.root) {
    spots_.push_back({"hidepid", "/proc hides the processes of other users"});
    all_references_ = false;
    return;  // pid 2 may be hidden as well, which says nothing about whose namespace this is
  }
  if (!snapshot.host.whole_host) {
    spots_.push_back(
        {"foreign-pid-namespace", "this is not the host's pid namespace: processes outside it cannot be seen"});
    all_references_ = false;
  }
}

void BlindSpots::add_unpinned(pid_t pid, const Error& error) {
  spots_.push_back({"not-pinned", fmt::format("process {} cannot be held on to: {}", pid, error.message)});
}

void BlindSpots::add_undetailed(pid_t pid, const Error& error) {
  spots_.push_back({"details-failed", fmt::format("process {}: {}", pid, error.message)});
  all_references_ = false;
}

void BlindSpots::add_unread_channels(std::vector<pid_t> pids) {
  if (pids.empty()) return;
  spots_.push_back({"pipes-failed", "pipes or sockets cannot be asked about: " + list_pids(std::move(pids))});
  all_references_ = false;
}

void BlindSpots::add_unread_listeners(std::vector<pid_t> pids) {
  if (pids.empty()) return;
  spots_.push_back({"listeners-failed",
                    "whether it listens on a socket cannot be read, so it is taken to: " + list_pids(std::move(pids))});
}

void BlindSpots::add_unread_sockets(const Error& error) {
  // A kernel without that interface has nobody who could be asked.
  if (error.code != ErrorCode::gone && error.code != ErrorCode::unsupported)
    spots_.push_back({"sockets-failed", error.message});
}

void BlindSpots::add_unread_nodes() {
  spots_.push_back({"nodes-failed", "not everything in /dev could be read: the driver may have more nodes there"});
  all_references_ = false;
}

void BlindSpots::add_unread_caller(const Error& error) {
  spots_.push_back({"caller-failed", "which processes vacate itself was started by cannot be read: " + error.message});
}

void BlindSpots::add_stuck_argv(pid_t pid) {
  spots_.push_back({"argv-timeout", fmt::format("reading the command line of process {} blocks", pid)});
}

void BlindSpots::add_hidden(pid_t pid) {
  spots_.push_back(
      {"hidden-process", fmt::format("the driver charges process {}, which exists but is not shown in /proc", pid)});
}

void BlindSpots::add_other_scan(const ScanUse& use) {
  spots_.push_back({"scan-changed", "not by BPF, as was asked for: " + use.why});
}

void BlindSpots::add_unknown_clients() {
  spots_.push_back({"clients-unknown", "which processes share an open file of a GPU could not be found out"});
}

void BlindSpots::add_in_flight(const InFlightScan& scan, const std::vector<Process>& processes) {
  for (const auto& queued : scan.queued) {
    if (find_by_pid(processes, queued.pid) == nullptr) continue;
    spots_.push_back({"descriptors-in-flight",
                      fmt::format("process {} has {} descriptor{} queued on its socket {}, received by nobody",
                                  queued.pid, queued.count, queued.count == 1 ? "" : "s", queued.fd)});
  }
  if (!scan.complete)
    spots_.push_back({"in-flight-unchecked", "too many sockets to look at each for queued descriptors"});
}

void BlindSpots::add_rings(const std::vector<RingFile>& rings) {
  for (const auto& ring : rings)
    spots_.push_back({"io-uring-files",
                      fmt::format("process {} has {} registered with its io_uring {}", ring.pid, ring.path, ring.fd)});
}

Visibility BlindSpots::take() {
  std::sort(spots_.begin(), spots_.end());
  spots_.erase(std::unique(spots_.begin(), spots_.end()), spots_.end());
  return {std::move(spots_), all_references_};
}

}  // namespace vacate
