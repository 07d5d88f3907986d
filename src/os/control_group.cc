// SPDX-License-Identifier: Apache-2.0
#include "os/control_group.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/deadline.h"
#include "base/text.h"
#include "os/proc_parse.h"
#include "os/procfs.h"

namespace vacate {
namespace {

constexpr int kDeepestGroup = 16;  // somebody inside may build as deep as the kernel lets him

bool write_word(int directory, const char* file, std::string_view word) noexcept {
  const UniqueFd target(openat(directory, file, O_WRONLY | O_CLOEXEC));
  return target && write(target.get(), word.data(), word.size()) == static_cast<ssize_t>(word.size());
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (off_t at = 0;;) {
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
}

/// Calls `visit` with a descriptor of every group below `directory`, deepest first.
template <class Visit>
void for_each_below(int directory, int depth, const Visit& visit) {
  const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy < 0 ? nullptr : fdopendir(copy);
  if (entries == nullptr) {
    if (copy >= 0) (void)close(copy);
    return;
  }
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    const UniqueFd below(openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below) continue;
    if (depth > 0) for_each_below(below.get(), depth - 1, visit);
    visit(directory, entry->d_name, below.get());
  }
  (void)closedir(entries);
}

void list_members(int directory, std::vector<pid_t>& pids) {
  const UniqueFd file(openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC));
  if (!file) return;
  const std::string text = read_all(file.get());  // split() gives views of it
  for (const auto line : split(text, '\n'))
    if (const auto pid = parse_unsigned(line)) pids.push_back(static_cast<pid_t>(*pid));
}

}  // namespace

std::string parse_own_cgroup2(std::string_view text) {
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("0::/")) continue;
    const auto path = line.substr(3);
    const bool is_outside = path.find("/../") != std::string_view::npos || path.ends_with("/..");
    return is_outside || path.ends_with(" (deleted)") ? std::string() : std::string(path);
  }
  return {};
}

Result<ControlGroup> ControlGroup::create_below_own(const std::string& name) {
  const auto mounts = read_file("/proc/self/mountinfo");
  const auto places = read_file("/proc/self/cgroup");
  const std::string mount = mounts ? parse_cgroup2_mount(*mounts) : "";
  const std::string own = places ? parse_own_cgroup2(*places) : "";
  if (mount.empty() || own.empty()) return Error{ErrorCode::unsupported, "no control group (v2) of vacate is visible"};
  const std::string base = own == "/" ? "" : own;
  UniqueFd parent(open((mount + base).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return system_error("control group " + own);
  if (mkdirat(parent.get(), name.c_str(), 0755) != 0) return system_error("a control group below " + own);
  UniqueFd directory(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  UniqueFd procs(directory ? openat(directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC) : -1);
  if (!procs) {
    const Error error = system_error("control group " + base + "/" + name);
    (void)unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR);
    return error;
  }
  return ControlGroup(base + "/" + name, name, std::move(parent), std::move(directory), std::move(procs));
}

std::vector<pid_t> ControlGroup::members() const {
  std::vector<pid_t> pids;
  list_members(directory_.get(), pids);
  for_each_below(directory_.get(), kDeepestGroup, [&](int, const char*, int below) { list_members(below, pids); });
  std::sort(pids.begin(), pids.end());
  return pids;
}

bool ControlGroup::freeze() const {
  static constexpr std::chrono::milliseconds kLongest{200};
  const UniqueFd events(openat(directory_.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
  if (!events || !write_word(directory_.get(), "cgroup.freeze", "1")) return false;
  const Deadline deadline = Deadline::after(kLongest);
  for (;;) {
    if (read_all(events.get()).find("frozen 1") != std::string::npos) return true;
    pollfd change{events.get(), POLLPRI, 0};
    if (poll(&change, 1, deadline.poll_timeout_ms()) == 0 && deadline.passed()) return false;
  }
}

void ControlGroup::thaw() const noexcept { (void)write_word(directory_.get(), "cgroup.freeze", "0"); }

bool ControlGroup::kill_everybody() const noexcept { return write_word(directory_.get(), "cgroup.kill", "1"); }

bool ControlGroup::remove() const noexcept {
  for_each_below(directory_.get(), kDeepestGroup,
                 [](int above, const char* name, int) { (void)unlinkat(above, name, AT_REMOVEDIR); });
  return unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace vacate
