// SPDX-License-Identifier: Apache-2.0
#include "probe/walk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "model/find_by_pid.h"
#include "os/workers.h"
#include "probe/descriptor_walk.h"

namespace vacate {
namespace {

/// Processes taken by a worker at a time. Tables differ in size, so few; of a process's state so many that a small
/// machine needs no second thread for it.
constexpr std::size_t kTablesAtATime = 32, kStatesAtATime = 256;

Process from_stat(const ProcStat& stat, std::uint64_t pid_namespace) {
  Process process;
  process.key = {stat.pid, stat.start_ticks, 0, pid_namespace};
  process.ppid = stat.ppid;
  process.pgid = stat.pgid;
  process.sid = stat.sid;
  process.comm = stat.comm;
  process.state = stat.state;
  process.threads = stat.threads;
  process.kernel_thread = stat.is_kernel_thread();
  process.exiting = stat.is_exiting();
  process.tty = stat.tty;
  return process;
}

/// As far as stat alone tells; candidates are looked at again.
Condition first_condition(const Process& process) noexcept {
  if (is_gone(process)) return Condition::zombie;
  if (process.exiting) return Condition::exiting;
  if (process.state == 'T') return Condition::stopped;
  if (process.state == 't') return Condition::traced;
  return Condition::running;
}

}  // namespace

void Walk::take(Walk&& part) {
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(part.processes, processes);
  move_all(part.hits, hits);
  channels.append(std::move(part.channels));
  move_all(part.rings, rings);
  move_all(part.files, files);
  move_all(part.denied, denied);
  move_all(part.failed, failed);
}

KernelFiles KernelFiles::read() {
  KernelFiles files;
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) == 0) {
    const UniqueFd first(ends[0]);
    const UniqueFd second(ends[1]);
    if (const auto file = read_identity(first.get())) files.pipe_device = file->device;
  }
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  if (const auto file = event ? read_identity(event.get()) : Result<FileIdentity>(system_error("eventfd"))) {
    files.anonymous_device = file->device;
    files.anonymous_inode = file->inode;
  }
  files.known = files.pipe_device != 0 && files.anonymous_device != 0;
  return files;
}

Walker::Walker(const ProcDirectory& root, const DeviceNodes& nodes, std::uint64_t pid_namespace,
               std::vector<std::uint64_t> watched)
    : context_(std::make_unique<WalkContext>(WalkContext{root, nodes, KernelFiles::read(), std::move(watched)})),
      pid_namespace_(pid_namespace) {}

Walker::~Walker() = default;

std::optional<Process> Walker::read_process(pid_t pid, Walk& failures) const {
  const auto stat = context_->root.stat_of(pid);
  if (!stat || stat->pid != pid) {
    if (!stat) (void)note_failure(failures, pid, stat.error());
    return std::nullopt;
  }
  auto process = from_stat(*stat, pid_namespace_);
  if (process.state == 'Z' && process.threads > 1) {
    // The main thread has ended; whether the process has is told by the others (facts.md 3.1).
    const auto directory = context_->root.open(pid);
    const auto thread = directory ? find_live_thread(*directory, pid) : directory.error();
    // Where that cannot be told it is taken to live: who lives owns what is his.
    if (!thread) (void)note_failure(failures, pid, thread.error());
    const bool lives = thread ? thread->has_value() : thread.error().code != ErrorCode::gone;
    process.exiting = lives && thread && (*thread)->all_exiting;
    if (lives) process.condition = Condition::zombie_leader;
    if (!lives) process.threads = 1;
  }
  if (process.condition != Condition::zombie_leader) process.condition = first_condition(process);
  return process;
}

template <class Worker>
void Walker::do_all(std::size_t count, std::size_t at_a_time, const Worker& make_worker) {
  std::vector<Walk> parts((count + at_a_time - 1) / at_a_time);
  std::atomic<std::size_t> next{0};
  run_on_workers(workers_for(parts.size()), [&] {
    auto work = make_worker();
    for (std::size_t part = next++; part < parts.size(); part = next++) {
      const std::size_t end = std::min(count, (part + 1) * at_a_time);
      for (std::size_t index = part * at_a_time; index < end; ++index) work(index, parts[part]);
      parts[part].channels.shrink_to_fit();
    }
  });
  for (auto& part : parts) walk_.take(std::move(part));
}

Result<void> Walker::list_processes() {
  DirectoryReader reader;
  const auto pids = list_numbers(context_->root, reader);
  if (!pids) return pids.error();
  auto& processes = walk_.processes;
  processes.resize(pids->size());
  do_all(pids->size(), kStatesAtATime, [&] {
    return [&](std::size_t index, Walk& failures) {
      if (auto process = read_process((*pids)[index], failures)) processes[index] = *std::move(process);
    };
  });
  std::erase_if(processes, [](const Process& process) { return process.key.pid == 0; });
  return {};
}

void Walker::add_process(pid_t pid) {
  auto& processes = walk_.processes;
  const auto at = place_of_pid(processes, pid);
  if (at != processes.end() && at->key.pid == pid) return;
  auto process = read_process(pid, walk_);
  if (!process) return;
  DescriptorWalk(*context_).walk(*process, walk_);
  processes.insert(at, *std::move(process));
}

void Walker::walk_all_descriptors() {
  if (!context_->files.known)
    walk_.failed.emplace_back(getpid(), "no pipe or event could be made, so those of others cannot be told from files");
  do_all(walk_.processes.size(), kTablesAtATime, [&] {
    return [&, tables = DescriptorWalk(*context_)](std::size_t index, Walk& found) mutable {
      tables.walk(walk_.processes[index], found);
    };
  });
}

void Walker::look_at_descriptor(pid_t pid, pid_t tid, int fd) {
  DescriptorWalk(*context_).look_at(pid, tid, fd, walk_);
}

void Walker::look_at_process(pid_t pid) {
  if (const auto* process = find_by_pid(walk_.processes, pid)) DescriptorWalk(*context_).walk(*process, walk_);
}

void Walker::look_at_threads(pid_t pid, const std::vector<pid_t>& tids) {
  DescriptorWalk(*context_).walk_threads(pid, tids, walk_);
}

const ProcDirectory& Walker::root() const noexcept { return context_->root; }

const KernelFiles& Walker::kernel_files() const noexcept { return context_->files; }

}  // namespace vacate
