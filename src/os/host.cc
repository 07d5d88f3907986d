// SPDX-License-Identifier: Apache-2.0
#include "os/host.h"

#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/text.h"

namespace vacate {

Host read_host() {
  Host host;
  if (const auto boot_id = read_file("/proc/sys/kernel/random/boot_id", 128))
    host.boot_id = std::string(trim(*boot_id));
  utsname names{};
  if (uname(&names) == 0) {
    host.kernel = names.release;
    host.hostname = names.nodename;
  }
  host.pid_namespace = own_pid_namespace();
  return host;
}

bool is_whole_host(const ProcDirectory& root) {
  const auto second = root.open(pid_t{2});
  if (!second) return false;
  const auto stat = second->stat();
  const auto status = second->status();
  return stat && status && stat->comm == "kthreadd" && stat->ppid == 0 && status->effective_uid == uid_t{0};
}

bool has_capability(std::uint64_t effective, unsigned number) noexcept {
  return number < 64 && ((effective >> number) & 1U) != 0;
}

namespace {

/// Control groups of these processes, each once; empty for one that could not be read, none for one that has ended.
std::vector<std::string> read_cgroups(const ProcDirectory& root, const std::vector<pid_t>& pids) {
  std::set<std::string> cgroups;
  for (const auto pid : pids) {
    const auto process = root.open(pid);
    const auto text = process ? process->read("cgroup", 65536) : Result<std::string>(process.error());
    if (text || text.error().code != ErrorCode::gone) cgroups.insert(text ? parse_cgroup(*text) : std::string());
  }
  return {cgroups.begin(), cgroups.end()};
}

/// Parent first. A parent that ends meanwhile has the chain read anew; one that stays away is hidden (hidepid), and
/// whoever may not see it may not signal it either.
Result<std::vector<pid_t>> read_ancestors(const ProcDirectory& root, const ProcDirectory& self) {
  static constexpr std::size_t kDeepest = 4096;  // pids can be recycled into a circle while the chain is read
  static constexpr int kTries = 4;
  std::vector<pid_t> ancestors;
  for (int i = 0; i < kTries; ++i) {
    ancestors.clear();
    auto stat = self.stat();
    while (stat && stat->ppid > 0 && ancestors.size() < kDeepest) {
      ancestors.push_back(stat->ppid);
      const auto parent = root.open(stat->ppid);
      stat = parent ? parent->stat() : Result<ProcStat>(parent.error());
    }
    if (stat) return ancestors;
    if (stat.error().code != ErrorCode::gone) return stat.error();
  }
  return ancestors;
}

}  // namespace

Caller caller_without_ancestors() {
  Caller caller;
  caller.uid = geteuid();
  caller.self.pid = getpid();
  caller.self.pid_namespace = own_pid_namespace();
  return caller;
}

Result<Caller> read_caller(const ProcDirectory& root) {
  Caller caller = caller_without_ancestors();
  const auto self = root.open(caller.self.pid);
  if (!self) return self.error();
  const auto status = self->status();
  if (!status) return status.error();
  const auto capabilities = status->effective_capabilities.value_or(0);
  caller.root =
      caller.uid == 0 && has_capability(capabilities, CAP_KILL) && has_capability(capabilities, CAP_SYS_PTRACE);
  const auto stat = self->stat();
  if (!stat) return stat.error();
  caller.self.start_ticks = stat->start_ticks;
  caller.session_leader = stat->sid;
  auto ancestors = read_ancestors(root, *self);
  if (!ancestors) return ancestors.error();
  caller.ancestors = *std::move(ancestors);
  auto chain = caller.ancestors;
  chain.insert(chain.end(), {caller.self.pid, caller.session_leader});
  caller.cgroups = read_cgroups(root, chain);
  return caller;
}

std::vector<std::string> parse_shells(std::string_view text) {
  std::vector<std::string> shells;
  for (const auto line : split(text, '\n')) {
    const auto path = trim(line.substr(0, line.find('#')));
    if (!path.empty() && path.front() == '/') shells.emplace_back(path);
  }
  return shells;
}

std::vector<std::string> read_shells() {
  const auto text = read_file("/etc/shells");
  if (!text) return {};
  auto shells = parse_shells(*text);
  const auto written = shells.size();
  for (std::size_t i = 0; i < written; ++i) {
    // /bin/sh is a link to the shell that runs: /proc/PID/exe shows the latter.
    char* resolved = realpath(shells[i].c_str(), nullptr);
    if (resolved == nullptr) continue;
    shells.emplace_back(resolved);
    free(resolved);  // NOLINT(cppcoreguidelines-no-malloc): realpath gave it
  }
  std::sort(shells.begin(), shells.end());
  shells.erase(std::unique(shells.begin(), shells.end()), shells.end());
  return shells;
}

}  // namespace vacate
