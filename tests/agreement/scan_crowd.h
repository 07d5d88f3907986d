// SPDX-License-Identifier: Apache-2.0
// Processes that hold a stand-in for a GPU node, and both scans of them, for the tests beside this. Needs root and a
// kernel that takes BPF programs.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>

#include <fmt/format.h>

#include "os/system_calls.h"
#include "probe/look_at_processes.h"
#include "probe/scan_bpf.h"

namespace vacate {

/// Major 1 has /dev/null, /dev/zero and their like: what processes have open of it stands for nodes of a GPU.
inline DeviceNodes stand_ins() {
  DeviceMajors majors;
  majors.known = true;
  majors.entries.push_back({1, NodeRole::gpu});
  return {{}, majors};
}

using Rows = std::set<std::string>;

/// What a walk found of `pids`, one row each, without its order.
inline Rows rows_of(const Walk& walk, const Mappings& mappings, const std::set<pid_t>& pids) {
  Rows rows;
  for (const auto& hit : walk.hits)
    if (pids.contains(hit.pid))
      rows.insert(fmt::format("hit {} {} {} {} {}", hit.pid, hit.tid, hit.fd, hit.node.first, hit.node.second));
  for (const auto& end : walk.channels)
    if (pids.contains(end.pid))
      rows.insert(fmt::format("channel {} {} {} {} {}", end.pid, end.tid, end.fd, end.inode, end.is_socket));
  for (const auto& file : walk.files)
    if (pids.contains(file.pid))
      rows.insert(fmt::format("file {} {} {} {} {}", file.pid, file.tid, file.fd, file.device, file.inode));
  for (const auto& ring : walk.rings)
    if (pids.contains(ring.pid)) rows.insert(fmt::format("ring {} {} {}", ring.pid, ring.fd, ring.path));
  for (const auto& hit : mappings.hits)
    if (pids.contains(hit.pid))
      rows.insert(fmt::format("mapping {} {} {} {}", hit.pid, hit.node.first, hit.node.second, hit.count));
  for (const auto pid : walk.denied)
    if (pids.contains(pid)) rows.insert(fmt::format("denied {}", pid));
  for (const auto& [pid, why] : walk.failed)
    if (pids.contains(pid)) rows.insert(fmt::format("failed {} {}", pid, why));
  for (const auto& list : {mappings.denied, mappings.stuck, mappings.failed})
    for (const auto pid : list)
      if (pids.contains(pid)) rows.insert(fmt::format("mapping unread {}", pid));
  return rows;
}

struct Seen {
  Rows rows;
  std::size_t channel_ends = 0;  ///< in tables of processes; rows would hide one that was found twice
  ScanUse use;
};

inline Seen look(ScanMethod method, const std::set<pid_t>& pids, const std::vector<std::uint64_t>& watched = {}) {
  const auto root = ProcDirectory::open_root();
  const auto nodes = stand_ins();
  Walker walker(*root, nodes, 1, watched);
  if (!walker.list_processes()) return {};
  const auto looked = look_at_processes(walker, nodes, watched, method);
  const auto& ends = walker.result().channels;
  const auto counts = [&](const ChannelEnd& end) { return end.tid == end.pid && pids.contains(end.pid); };
  const auto channel_ends = static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), counts));
  return {rows_of(walker.result(), looked.mappings, pids), channel_ends, looked.use};
}

/// Processes that end with the test.
class Crowd {
 public:
  Crowd() = default;
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const auto pid : pids_) {
      const UniqueFd pidfd(open_pidfd(pid));
      if (pidfd) (void)signal_pidfd(pidfd.get(), SIGKILL);
      (void)waitpid(pid, nullptr, __WALL);
    }
  }

  /// A child that does `work` and then waits; it is ready when this returns.
  template <class Work>
  pid_t add(const Work& work) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)close(ends[0]);
      work([&] { (void)!write(ends[1], "x", 1); });
      (void)!write(ends[1], "x", 1);
      for (;;) (void)pause();
    }
    (void)close(ends[1]);
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
    (void)close(ends[0]);
    pids_.insert(pid);
    return pid;
  }
  [[nodiscard]] const std::set<pid_t>& pids() const noexcept { return pids_; }

 private:
  std::set<pid_t> pids_;
};

inline void open_node(int flags = O_RDWR) { (void)!open("/dev/zero", flags | O_CLOEXEC); }

inline bool is_usable(std::string& why) {
  const auto works = check_bpf_scan();
  if (!works) why = works.error().message;
  return works.has_value();
}

#define SKIP_WITHOUT_BPF()                          \
  if (geteuid() != 0) GTEST_SKIP() << "needs root"; \
  if (std::string why; !is_usable(why)) GTEST_SKIP() << "no BPF: " << why

inline bool has_row(const Seen& seen, const std::string& start) {
  return std::any_of(seen.rows.begin(), seen.rows.end(), [&](const auto& row) { return row.starts_with(start); });
}

/// Raises the limit of open files as far as it goes: that far.
inline int raise_limit() {
  rlimit limit{};
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1000000));
}

/// So many ends that what is to be reported of one table is more than a report has room for.
inline void open_many_ends() {
  static constexpr int kMany = 12000;
  raise_limit();
  int ends[2];
  (void)!pipe(ends);
  for (int n = 0; n < kMany; ++n) (void)dup(ends[n % 2]);
}

/// The exit code of `work` in a child that is the first process of a new pid namespace.
template <class Work>
inline int run_in_pid_namespace(const Work& work) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(90);
    const pid_t first = fork();
    if (first == 0) {
      const int code = work();
      (void)fflush(stdout);
      _exit(code);
    }
    int status = 0;
    (void)waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 91);
  }
  int status = 0;
  (void)waitpid(outer, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 92;
}

}  // namespace vacate
