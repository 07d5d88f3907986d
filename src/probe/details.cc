// SPDX-License-Identifier: Apache-2.0
#include "probe/details.h"

#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "model/find_by_pid.h"
#include "model/process.h"
#include "os/system_calls.h"
#include "probe/clocks.h"

namespace vacate {
namespace {

constexpr std::size_t kLongestCommandLine = std::size_t{128} << 10U;
constexpr std::size_t kLargestStack = 65536;

/// 0: it may not be asked.
Result<std::uint64_t> namespace_of(const ProcDirectory& process) {
  const auto link = process.read_link("ns/pid");
  if (!link && link.error().code != ErrorCode::denied) return link.error();
  return link ? parse_bracketed_inode(*link).value_or(0) : 0;
}

std::string without_deleted(std::string path) {
  static constexpr std::string_view kDeleted = " (deleted)";
  if (path.size() > kDeleted.size() && path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

Unknown reason_of(const Error& error) noexcept {
  return error.code == ErrorCode::denied ? Unknown::no_permission : Unknown::failed;
}

/// The first block again: it may have changed since the walk.
Result<void> refresh(const ProcDirectory& directory, Process& process) {
  const auto stat = directory.stat();
  if (!stat) return stat.error();
  if (stat->start_ticks != process.key.start_ticks) return Error{ErrorCode::gone, "another process by now"};
  process.ppid = stat->ppid;
  process.pgid = stat->pgid;
  process.sid = stat->sid;
  process.comm = stat->comm;
  process.state = stat->state;
  process.threads = stat->threads;
  process.exiting = stat->is_exiting();
  return {};
}

}  // namespace

bool parse_frozen(std::string_view cgroup_events) noexcept {
  while (!cgroup_events.empty()) {
    const auto end = cgroup_events.find('\n');
    if (cgroup_events.substr(0, end) == "frozen 1") return true;
    cgroup_events.remove_prefix(end == std::string_view::npos ? cgroup_events.size() : end + 1);
  }
  return false;
}

FrozenCgroups FrozenCgroups::read() {
  FrozenCgroups cgroups;
  if (const auto mounts = read_file("/proc/self/mountinfo")) cgroups.mounts_ = parse_freezer_mounts(*mounts);
  return cgroups;
}

bool FrozenCgroups::is_frozen(const std::string& path, Freezer freezer) {
  const std::string& mount = freezer == Freezer::v1 ? mounts_.v1 : mounts_.v2;
  // "/.." prefixes: outside of what this cgroup namespace can see.
  if (mount.empty() || path.empty() || path == "/" || path.find("/..") != std::string::npos) return false;
  const auto [entry, added] = known_.try_emplace({freezer, path}, false);
  if (!added) return entry->second;
  const char* const file = freezer == Freezer::v1 ? "/freezer.state" : "/cgroup.events";
  const auto text = read_file((mount + path + file).c_str(), 4096);
  if (text) entry->second = freezer == Freezer::v1 ? trim(*text) != "THAWED" : parse_frozen(*text);
  return entry->second;
}

DetailReader::DetailReader(const ProcDirectory& root, Users users)
    : root_(root), users_(std::move(users)), frozen_(FrozenCgroups::read()) {
  boot_time_ = vacate::boot_time();
  const long ticks = sysconf(_SC_CLK_TCK);
  if (ticks > 0) ticks_a_second_ = static_cast<double>(ticks);
}

Result<void> DetailReader::read(Process& process) {
  auto read = read_everything(process);
  if (read) {
    process.detailed = true;
  } else if (read.error().code != ErrorCode::gone) {
    process.cgroup.clear();  // half of the facts could speak against it and the other half for it
  }
  return read;
}

Result<void> DetailReader::read_everything(Process& process) {
  const auto directory = root_.open(process.key.pid);
  const Process before = process;
  if (!directory) return directory.error();
  if (auto same = refresh(*directory, process); !same) return same;
  const auto status = directory->status();
  if (!status) return status.error();
  process.uid = status->effective_uid ? Reading<uid_t>(*status->effective_uid) : Reading<uid_t>(Unknown::failed);
  process.user = process.uid ? users_.name_of(*process.uid) : std::string();
  process.ns_pids = status->ns_pids;
  process.started = boot_time_ + static_cast<double>(process.key.start_ticks) / ticks_a_second_;
  const auto cgroup = directory->read("cgroup", 65536);
  if (!cgroup && cgroup.error().code != ErrorCode::denied && cgroup.error().code != ErrorCode::gone)
    return cgroup.error();
  process.cgroup = cgroup ? parse_cgroup(*cgroup) : std::string();
  if (status->locked_kib || status->pinned_kib)
    process.pinned_memory = Bytes{(status->locked_kib.value_or(0) + status->pinned_kib.value_or(0)) * 1024};
  const auto login = directory->read("loginuid", 32);
  process.login_uid = login ? parse_login_uid(*login) : std::nullopt;
  process.login_user = process.login_uid ? users_.name_of(*process.login_uid) : std::string();

  char thread_state = '?';
  std::optional<ProcDirectory> thread;
  if (process.state == 'Z' && process.threads > 1) {
    const auto found = find_live_thread(*directory, process.key.pid);
    if (!found) return found.error();
    const auto& live = *found;
    process.exiting = live && live->all_exiting;
    auto opened = live ? directory->open(("task/" + std::to_string(live->tid)).c_str())
                       : Result<ProcDirectory>(Error{ErrorCode::gone, ""});
    if (!opened && opened.error().code != ErrorCode::gone) return opened.error();
    if (opened) thread.emplace(*std::move(opened));
    const auto stat = thread ? thread->stat() : Result<ProcStat>(Error{ErrorCode::gone, ""});
    if (stat) thread_state = stat->state;
    if (!live) process.threads = 1;
  }
  const ProcDirectory& owner = thread ? *thread : *directory;
  if (auto facts = read_memory_facts(owner, process); !facts) return facts;
  const auto groups = cgroup ? parse_freezer_paths(*cgroup) : FreezerPaths{};
  process.condition = condition_of(before, process, *status, groups, thread_state);
  if (process.state != 'D' && thread_state != 'D') process.wchan.clear();
  return {};
}

/// What hangs on the memory or the namespaces of a task: gone for a leader that has ended, there for its live threads.
/// A zombie has neither.
Result<void> DetailReader::read_memory_facts(const ProcDirectory& owner, Process& process) const {
  const auto is_expected = [](const Error& error) {
    return error.code == ErrorCode::denied || error.code == ErrorCode::gone;
  };
  auto exe = owner.read_link("exe");
  if (!exe && !is_expected(exe.error())) return exe.error();
  process.exe =
      exe ? Reading<std::string>(without_deleted(*std::move(exe))) : Reading<std::string>(reason_of(exe.error()));
  const auto pid_namespace = namespace_of(owner);
  if (!pid_namespace && !is_expected(pid_namespace.error())) return pid_namespace.error();
  process.pid_namespace = pid_namespace.value_or(0);
  const auto wchan = owner.read("wchan", 256);
  process.wchan = wchan && *wchan != "0" ? *wchan : std::string();
  return {};
}

/// Since Linux 6.1 version 1 freezes who sleeps where it sleeps, so that only the group tells; before, and whoever it
/// met awake, it has wait in its refrigerator (facts.md 3.5). Who is in D at once with the group is not reached by
/// KILL, whatever for.
bool DetailReader::is_frozen(const Process& now, const FreezerPaths& groups, char thread_state) {
  if (now.wchan == "__refrigerator" || now.wchan == "do_freezer_trap") return true;
  if (groups.v2 && frozen_.is_frozen_by_v2(*groups.v2)) return true;
  const bool waits = now.state == 'D' || thread_state == 'D';
  return waits && groups.v1 && frozen_.is_frozen_by_v1(*groups.v1);
}

Condition DetailReader::condition_of(const Process& before, const Process& now, const ProcStatus& status,
                                     const FreezerPaths& groups, char thread_state) {
  if (is_gone(now) && now.threads <= 1) return Condition::zombie;
  if (status.core_dumping) return Condition::dumping_core;
  if (now.exiting) return Condition::exiting;
  if (is_frozen(now, groups, thread_state)) return Condition::frozen;
  if (now.state == 'Z') return thread_state == 'D' ? Condition::stuck : Condition::zombie_leader;
  if (now.state == 'T') return Condition::stopped;
  if (now.state == 't') return Condition::traced;
  // Every disk read is a moment of D: stuck is who is there at both looks. A parent in vfork waits there killable
  // (facts.md 3.6).
  if (now.state == 'D' && before.state == 'D' && now.wchan != "kernel_clone") return Condition::stuck;
  return Condition::running;
}

bool waits_in_kernel(const Process& process) noexcept {
  return process.condition == Condition::stuck || (process.condition == Condition::exiting && !process.wchan.empty());
}

KernelStackScan::KernelStackScan(std::vector<pid_t> pids)
    : pids_(std::move(pids)), pass_("vacate-stack", pids_.size(), [this](std::size_t index, FrameWriter& answer) {
        const pid_t pid = pids_[index];
        const auto root = ProcDirectory::open_root();
        auto task = root ? root->open(pid) : Result<ProcDirectory>(root.error());
        auto stat = task ? task->stat() : Result<ProcStat>(task.error());
        if (stat && stat->state == 'Z') {
          const auto live = find_live_thread(*task, pid).value_or(std::nullopt);
          auto thread = live ? task->open(("task/" + std::to_string(live->tid)).c_str())
                             : Result<ProcDirectory>(Error{ErrorCode::gone, ""});
          task = std::move(thread);
          stat = task ? task->stat() : Result<ProcStat>(task.error());
        }
        const auto text = task ? task->read("stack", kLargestStack) : Result<std::string>(task.error());
        answer.number(static_cast<std::uint8_t>(stat ? stat->state : '?'));
        answer.text(text ? *text : std::string());
      }) {}

std::map<pid_t, KernelLook> KernelStackScan::finish() {
  std::map<pid_t, KernelLook> looks;
  (void)pass_.finish([&](std::size_t index, std::string_view bytes) {
    FrameReader answer(bytes);
    KernelLook look;
    look.state = static_cast<char>(answer.number<std::uint8_t>());
    look.frames = parse_kernel_stack(answer.text());
    if (answer.complete()) looks[pids_[index]] = std::move(look);
  });
  return looks;
}

void apply_look(const KernelLook& look, Process& process) {
  if (look.state != 'D' && process.condition == Condition::stuck) {
    // It was a moment of two after all.
    process.condition = process.state == 'Z' ? Condition::zombie_leader : Condition::running;
    process.wchan.clear();
    return;
  }
  if (look.frames.empty()) return;
  process.kernel_frame = look.frames.front().function;
  process.kernel_module = look.frames.front().module;
  process.stuck_in = classify_kernel_stack(look.frames);
}

CommandLineScan::CommandLineScan(std::vector<pid_t> pids)
    : pids_(std::move(pids)), pass_("vacate-argv", pids_.size(), [this](std::size_t index, FrameWriter& answer) {
        // Takes the target's mmap_lock (facts.md 3.2): this runs in the child.
        const pid_t pid = pids_[index];
        const auto root = ProcDirectory::open_root();
        const auto process = root ? root->open(pid) : Result<ProcDirectory>(root.error());
        auto text = process ? process->read("cmdline", kLongestCommandLine) : Result<std::string>(process.error());
        const auto thread = text && text->empty() ? find_live_thread(*process, pid).value_or(std::nullopt)
                                                  : std::optional<LiveThread>();
        if (thread)
          text = process->read(("task/" + std::to_string(thread->tid) + "/cmdline").c_str(), kLongestCommandLine);
        answer.number(static_cast<std::uint8_t>(text.has_value()));
        answer.text(text ? *text : std::string());
      }) {}

std::map<pid_t, Reading<std::vector<std::string>>> CommandLineScan::finish() {
  std::map<pid_t, Reading<std::vector<std::string>>> lines;
  const auto missing = pass_.finish([&](std::size_t index, std::string_view bytes) {
    FrameReader answer(bytes);
    const bool read = answer.number<std::uint8_t>() != 0;
    const auto text = answer.text();
    auto& line = lines[pids_[index]];
    if (read && answer.complete()) {
      line = parse_words(text);
    } else {
      line = Unknown::failed;
    }
  });
  for (const auto index : missing) lines[pids_[index]] = Unknown::timed_out;
  return lines;
}

std::optional<pid_t> parse_named_parent(const std::vector<std::string>& argv) noexcept {
  static constexpr std::string_view kOption = "--parent=";
  for (const auto& word : argv) {
    if (!word.starts_with(kOption)) continue;
    const auto pid = parse_unsigned(word.substr(kOption.size()));
    if (pid && *pid > 0 && *pid <= kLargestPid) return static_cast<pid_t>(*pid);
  }
  return std::nullopt;
}

namespace {

/// The process that has `number` inside the pid namespace `inode`.
struct NamespaceSearch {
  pid_t pid = 0;          ///< 0: none found
  bool everybody = true;  ///< false: some process did not let its namespace be read
};
NamespaceSearch find_in_namespace(const ProcDirectory& root, const std::vector<Process>& processes, std::uint64_t inode,
                                  pid_t number) {
  NamespaceSearch search;
  for (const auto& process : processes) {
    if (process.kernel_thread || is_gone(process)) continue;
    const auto directory = root.open(process.key.pid);
    const auto theirs = directory ? namespace_of(*directory) : directory.error();
    if (!theirs && theirs.error().code == ErrorCode::gone) continue;
    search.everybody = search.everybody && theirs.value_or(0) != 0;
    if (theirs.value_or(0) != inode) continue;
    const auto status = directory->status();
    if (!status && status.error().code == ErrorCode::gone) continue;
    search.everybody = search.everybody && status && !status->ns_pids.empty();
    if (status && !status->ns_pids.empty() && status->ns_pids.back() == number) {
      search.pid = process.key.pid;
      return search;
    }
  }
  return search;
}

/// A number exists though no process of this scan has it: hidden by hidepid, or started since.
bool exists_unseen(pid_t pid) {
  const UniqueFd pidfd(open_pidfd(pid));
  return pidfd || (errno != ESRCH && errno != EINVAL && errno != ENOENT);
}

}  // namespace

void resolve_named_parents(const ProcDirectory& root, std::vector<Process>& processes) {
  for (auto& process : processes) {
    const auto number = process.argv.known() ? parse_named_parent(*process.argv) : std::nullopt;
    if (!number || process.pid_namespace == 0) continue;
    const bool own = process.pid_namespace == process.key.pid_namespace;
    const auto search =
        own ? NamespaceSearch{*number, true} : find_in_namespace(root, processes, process.pid_namespace, *number);
    const Process* parent = find_by_pid(processes, search.pid);
    process.named_parent = search.pid != 0 ? search.pid : *number;
    if (parent != nullptr) {
      // A parent is not younger than its child: a younger bearer of the number got it after the parent's death.
      process.named_parent_alive = !is_gone(*parent) && parent->key.start_ticks <= process.key.start_ticks;
    } else {
      process.named_parent_alive = own ? exists_unseen(*number) : !search.everybody;
    }
  }
}

}  // namespace vacate
