// SPDX-License-Identifier: Apache-2.0
#include "os/machine_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "os/host.h"
#include "os/procfs.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

Reading<bool> readable(const char* path) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return errno == ENOENT ? Reading<bool>(Unknown::not_supported) : Reading<bool>(false);
  char byte = 0;
  return read(file.get(), &byte, 1) >= 0;
}

void probe_pidfds(MachineFacts& facts) {
  static constexpr long kPidfs = 0x50494446;
  const UniqueFd self(open_pidfd(getpid()));
  facts.pidfd_open = static_cast<bool>(self);
  if (!self) return;
  facts.pidfd_signal = signal_pidfd(self.get(), 0) == 0;  // signal 0 is none: it only asks
  struct statfs where {};
  if (fstatfs(self.get(), &where) == 0) facts.pidfs = where.f_type == kPidfs;
}

/// The first mapping of our own program, by the name that the kernel gives it.
Reading<bool> can_follow_mappings() {
  const auto maps = read_file("/proc/self/maps", 4096);
  if (!maps) return Unknown::failed;
  const std::string_view range = split(*maps, ' ').front();
  // maps pads addresses, map_files does not; ours have no leading zero.
  struct stat mapped {};
  return stat(("/proc/self/map_files/" + std::string(range)).c_str(), &mapped) == 0;
}

Reading<bool> has_cgroup_kill(std::string_view mountinfo) {
  const std::string mount = parse_cgroup2_mount(mountinfo);
  const auto own = read_file("/proc/self/cgroup", 65536);
  if (mount.empty() || !own) return Unknown::not_supported;
  for (const auto line : split(*own, '\n')) {
    if (line.starts_with("0::/") && line != "0::/")
      return access((mount + std::string(line.substr(3)) + "/cgroup.kill").c_str(), F_OK) == 0;
  }
  // The root group has no such file; any group below it tells.
  const UniqueFd root(open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DirectoryReader groups;
  groups.start(root.get());
  while (const char* name = root ? groups.next() : nullptr) {
    const std::string group = mount + '/' + name;
    if (access((group + "/cgroup.procs").c_str(), F_OK) == 0)
      return access((group + "/cgroup.kill").c_str(), F_OK) == 0;
  }
  return Unknown::not_supported;
}

void read_kernel_settings(MachineFacts& facts) {
  if (const auto scope = read_file("/proc/sys/kernel/yama/ptrace_scope", 64))
    if (const auto number = parse_unsigned(trim(*scope))) facts.ptrace_scope = static_cast<std::uint32_t>(*number);
  if (const auto lockdown = read_file("/sys/kernel/security/lockdown", 256)) facts.lockdown = parse_lockdown(*lockdown);
}

}  // namespace

CgroupLayout parse_cgroup_layout(std::string_view mountinfo) {
  bool v1 = false;
  bool v2 = false;
  for (const auto line : split(mountinfo, '\n')) {
    v1 = v1 || line.find(" - cgroup ") != std::string_view::npos;
    v2 = v2 || line.find(" - cgroup2 ") != std::string_view::npos;
  }
  return v1 && v2 ? CgroupLayout::hybrid : v2 ? CgroupLayout::v2 : v1 ? CgroupLayout::v1 : CgroupLayout::none;
}

std::string parse_lockdown(std::string_view text) {
  const auto open = text.find('[');
  const auto close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

MachineFacts read_machine_facts() {
  MachineFacts facts;
  facts.uid = geteuid();
  facts.kcmp = compare_tables(getpid(), getpid()) == 0;
  facts.kernel_stack = readable("/proc/self/stack");
  facts.map_files = can_follow_mappings();
  facts.looks_contained = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
                          access("/run/systemd/container", F_OK) == 0;
  struct stat descriptors {};
  if (stat("/proc/self/fd", &descriptors) == 0) facts.counts_descriptors = descriptors.st_size > 0;
  probe_pidfds(facts);
  read_kernel_settings(facts);
  const auto root = ProcDirectory::open_root();
  if (!root) return facts;
  facts.proc_shows_host = is_whole_host(*root);
  if (const auto self = root->open(getpid()))
    if (const auto status = self->status(); status && status->effective_capabilities)
      facts.capabilities = *status->effective_capabilities;
  if (const auto mounts = root->read("self/mountinfo")) {
    const auto proc = parse_proc_mount(*mounts);
    facts.hides_processes = proc.hides_processes;
    facts.denies_access = proc.denies_access;
    facts.cgroups = parse_cgroup_layout(*mounts);
    facts.cgroup_kill = has_cgroup_kill(*mounts);
  }
  return facts;
}

}  // namespace vacate
