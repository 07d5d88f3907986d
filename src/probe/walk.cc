// SPDX-License-Identifier: Apache-2.0
#include "probe/walk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>

#include "base/text.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

constexpr std::uint32_t kOwnerBits = 0700;
constexpr std::string_view kBufferLink = "/dmabuf:";
/// Tables compared with before a thread's is walked anew. More private tables than that in one process are counted
/// again.
constexpr std::size_t kMostKnownTables = 16;

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

int number_of(const char* name) noexcept { return static_cast<int>(parse_unsigned(name).value_or(0)); }

}  // namespace

std::string descriptor_info_name(const char* fd) { return std::string("fdinfo/") + fd; }

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

std::optional<Process> Walker::read_process(pid_t pid) {
  const auto stat = root_.stat_of(pid);
  if (!stat || stat->pid != pid) {
    if (!stat) (void)note_failure(pid, stat.error());
    return std::nullopt;
  }
  auto process = from_stat(*stat, pid_namespace_);
  if (process.state == 'Z' && process.threads > 1) {
    // The main thread has ended; whether the process has is told by the others (facts.md 3.1).
    const auto directory = root_.open(pid);
    const auto thread = directory ? find_live_thread(*directory, pid) : directory.error();
    // Where that cannot be told it is taken to live: who lives owns what is his.
    if (!thread) (void)note_failure(pid, thread.error());
    const bool lives = thread ? thread->has_value() : thread.error().code != ErrorCode::gone;
    process.exiting = lives && thread && (*thread)->all_exiting;
    if (lives) process.condition = Condition::zombie_leader;
    if (!lives) process.threads = 1;
  }
  if (process.condition != Condition::zombie_leader) process.condition = first_condition(process);
  return process;
}

Result<void> Walker::list_processes() {
  const auto pids = list_numbers(root_, reader_);
  if (!pids) return pids.error();
  walk_.processes.reserve(pids->size());
  for (const pid_t pid : *pids)
    if (auto process = read_process(pid)) walk_.processes.push_back(*std::move(process));
  return {};
}

void Walker::add_process(pid_t pid) {
  const auto at = std::lower_bound(walk_.processes.begin(), walk_.processes.end(), pid,
                                   [](const Process& process, pid_t wanted) { return process.key.pid < wanted; });
  if (at != walk_.processes.end() && at->key.pid == pid) return;
  auto process = read_process(pid);
  if (!process) return;
  walk_descriptors(*walk_.processes.insert(at, *std::move(process)));
}

void Walker::walk_all_descriptors() {
  if (!files_.known)
    walk_.failed.emplace_back(getpid(), "no pipe or event could be made, so those of others cannot be told from files");
  for (auto& process : walk_.processes) walk_descriptors(process);
}

void Walker::walk_descriptors(Process& process) {
  if (process.kernel_thread || is_gone(process)) return;
  const auto directory = root_.open(process.key.pid);
  if (!directory) {
    (void)note_failure(process.key.pid, directory.error());
    return;
  }
  const bool leader_has_table = process.state != 'Z';
  if (leader_has_table && !walk_table(*directory, {process.key.pid, process.key.pid})) return;
  if (process.threads > 1) walk_threads(*directory, process, leader_has_table);
}

void Walker::walk_threads(const ProcDirectory& process, const Process& about, bool leader_has_table) {
  const pid_t pid = about.key.pid;
  const auto tasks = process.open("task");
  const auto tids = tasks ? list_numbers(*tasks, tasks_) : Result<std::vector<pid_t>>(tasks.error());
  if (!tids) {
    (void)note_failure(pid, tids.error());
    return;
  }
  std::vector<pid_t> known_tables;
  if (leader_has_table) known_tables.push_back(pid);
  for (const pid_t tid : *tids) {
    if (tid == pid) continue;
    // kcmp is the only way to tell a table of its own from the shared one. Where it is forbidden or missing the
    // thread's table is walked; a descriptor seen in the leader's is not counted again when hits are summed up.
    const bool shares = std::any_of(known_tables.begin(), known_tables.end(),
                                    [&](pid_t other) { return compare_tables(tid, other) == 0; });
    if (shares) continue;
    const auto task = tasks->open(tid);
    if (!task) {
      (void)note_failure(pid, task.error());  // unless it ended meanwhile
      continue;
    }
    if (known_tables.size() < kMostKnownTables) known_tables.push_back(tid);
    if (!walk_table(*task, {pid, tid})) return;
  }
}

bool Walker::walk_table(const ProcDirectory& owner, Table table) {
  const auto descriptors = owner.open("fd");
  if (!descriptors) return note_failure(table.pid, descriptors.error());
  reader_.start(descriptors->descriptor());
  while (const char* name = reader_.next()) {
    const auto file = descriptors->identity(name);
    if (file) {
      take_descriptor(owner, *descriptors, table, name, *file);
    } else if (file.error().code == ErrorCode::denied) {
      return note_failure(table.pid, file.error());
    } else if (!is_of_no_interest(*descriptors, name)) {
      (void)note_failure(table.pid, file.error());  // unless it was closed meanwhile
    }
  }
  return reader_.error() == 0 || note_failure(table.pid, system_error("fd", reader_.error()));
}

/// What cannot be asked may be a file on a dead file system: no GPU node, no pipe. Its name tells.
bool Walker::is_of_no_interest(const ProcDirectory& descriptors, const char* name) const {
  const auto link = descriptors.read_link(name);
  return watched_.empty() && link && link->starts_with('/') && !link->starts_with(kBufferLink) &&
         !ends_in_node_name(*link);
}

void Walker::take_descriptor(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table,
                             const char* name, const FileIdentity& file) {
  if (std::find(watched_.begin(), watched_.end(), file.device) != watched_.end())
    walk_.files.push_back({table.pid, table.tid, number_of(name), file.device, file.inode});
  if (file.is_fifo() || file.is_socket()) {
    if (file.is_socket() || file.device == files_.pipe_device)
      walk_.channels.push_back({file.inode, table.pid, table.tid, number_of(name), file.is_socket()});
    return;
  }
  if (file.device == files_.anonymous_device) {
    if (file.inode != files_.anonymous_inode) take_ring(owner, descriptors, table, name);
    return;
  }
  if (file.is_typeless()) {
    take_buffer(owner, descriptors, table, name, file);
    return;
  }
  const auto node = nodes_.match(file);
  if (!node) return;
  // O_PATH never reached the driver. Its link has no permission bits; neither has one opened with access mode 3, so
  // ask.
  const auto link = descriptors.identity(name, Links::keep);
  if (!link || (link->mode & kOwnerBits) == 0) {
    const auto text = owner.read(descriptor_info_name(name).c_str());
    const auto info = text ? parse_fdinfo(*text) : std::nullopt;
    if (info && info->is_path_only()) return;
  }
  walk_.hits.push_back({table.pid, table.tid, number_of(name), *node});
}

void Walker::take_ring(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table, const char* name) {
  const auto link = descriptors.read_link(name);
  if (!link) (void)note_failure(table.pid, link.error());
  if (!link || *link != "anon_inode:[io_uring]") return;
  const auto info = read_info(owner, table, name);
  if (!info) return;
  for (const auto& path : info->user_files)
    if (ends_in_node_name(path)) walk_.rings.push_back({table.pid, number_of(name), path});
}

/// A buffer of the driver, exported: of no device number, told by its exporter (facts.md 2.2.7).
void Walker::take_buffer(const ProcDirectory& owner, const ProcDirectory& descriptors, Table table, const char* name,
                         const FileIdentity& file) {
  static constexpr std::string_view kExporter = "nv_dmabuf";
  const auto link = descriptors.read_link(name);
  if (!link) (void)note_failure(table.pid, link.error());
  if (!link || !link->starts_with(kBufferLink)) return;
  const auto info = read_info(owner, table, name);
  if (info && info->exporter == kExporter)
    walk_.hits.push_back({table.pid, table.tid, number_of(name), {NodeKind::dma_buf, file.device, file.inode}});
}

std::optional<FdInfo> Walker::read_info(const ProcDirectory& owner, Table table, const char* name) {
  const auto text = owner.read(descriptor_info_name(name).c_str());
  if (!text) (void)note_failure(table.pid, text.error());
  return text ? parse_fdinfo(*text) : std::nullopt;
}

bool Walker::note_failure(pid_t pid, const Error& error) {
  if (error.code == ErrorCode::gone) return false;
  if (error.code == ErrorCode::denied) {
    if (walk_.denied.empty() || walk_.denied.back() != pid) walk_.denied.push_back(pid);
  } else {
    walk_.failed.emplace_back(pid, error.message);
  }
  return false;
}

}  // namespace vacate
