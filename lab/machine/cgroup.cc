// SPDX-License-Identifier: Apache-2.0
// See cgroup.h.
#include "lab/machine/cgroup.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/deadline.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "lab/machine/files.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr std::string_view kPrefix = "vacate-lab.";

bool has_word(std::string_view list, std::string_view word) {
  const auto words = vacate::split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Mount point of the whole tree; the last one counts, as a look-up would. In mountinfo the type comes after " - ".
std::optional<std::string> mount_of(CgroupTree tree) {
  const std::string table = read_file("/proc/self/mountinfo");
  std::optional<std::string> point;
  for (const std::string_view line : vacate::split(table, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto head = vacate::split(line.substr(0, dash), ' ');
    const auto tail = vacate::split(line.substr(dash + 3), ' ');
    if (head.size() < 5 || tail.size() < 3) continue;
    const bool is_it = tree == CgroupTree::v2 ? tail[0] == "cgroup2"
                                              : tail[0] == "cgroup" && head[3] == "/" && has_word(tail[2], "freezer");
    if (is_it) point = std::string(head[4]);
  }
  return point;
}

std::string own_path(CgroupTree tree) {
  const std::string table = read_file("/proc/self/cgroup");
  for (const std::string_view line : vacate::split(table, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_it = tree == CgroupTree::v2 ? line.starts_with("0::") : has_word(controllers, "freezer");
    if (is_it) return std::string(line.substr(second + 1));
  }
  return "/";
}

int remove_directory(const char* path, const struct stat* /*info*/, int type, FTW* /*where*/) {
  if (type == FTW_DP) rmdir(path);
  return 0;
}

void remove_groups(const std::string& path) { nftw(path.c_str(), remove_directory, 16, FTW_DEPTH | FTW_PHYS); }

int thaw_directory(const char* path, const struct stat* /*info*/, int type, FTW* /*where*/) {
  if (type != FTW_D) return 0;
  const UniqueFd state(open((std::string(path) + "/freezer.state").c_str(), O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kThawed = "THAWED";
  if (state) (void)!write(state.get(), kThawed.data(), kThawed.size());
  return 0;
}

void thaw_groups(const std::string& path) { nftw(path.c_str(), thaw_directory, 16, FTW_PHYS); }

/// Directories of machines whose lab was killed. An occupied one cannot be removed, so that a wrong guess does no harm.
void remove_stale(const std::string& parent) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(parent, problem)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto maker = vacate::parse_unsigned(std::string_view(name).substr(kPrefix.size()));
    if (!maker || kill(static_cast<pid_t>(*maker), 0) == 0 || errno != ESRCH) continue;
    thaw_groups(entry.path().string());
    remove_groups(entry.path().string());
  }
}

/// A process leaves its cgroup a moment after it can be waited for.
void wait_until_empty(const std::string& path) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  const UniqueFd events(open((path + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  while (events && !deadline.passed()) {
    char text[256] = {};
    if (pread(events.get(), text, sizeof text - 1, 0) <= 0) return;
    if (std::string_view(text).find("populated 0") != std::string_view::npos) return;
    pollfd change{events.get(), POLLPRI, 0};
    poll(&change, 1, deadline.poll_timeout_ms());
  }
}

/// Version 1 tells nobody that a group is empty, hence the short looks.
void remove_when_empty(const std::string& path) {
  wait_until_empty(path);
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  for (remove_groups(path); access(path.c_str(), F_OK) == 0 && !deadline.passed(); remove_groups(path)) {
    poll(nullptr, 0, 5);
  }
}

[[noreturn]] void be_thawer(const std::string& path, int end) {
  setsid();  // a terminal's signals are not for it
  // Nobody who waits for the end of the lab's output is to wait for this.
  if (dup2(end, 0) < 0) _exit(1);
  close_range(1, ~0U, 0);
  char nothing = 0;
  while (read(0, &nothing, 1) < 0 && errno == EINTR) {
  }
  thaw_groups(path);
  _exit(0);
}

}  // namespace

Result<UniqueFd> start_thawer(const std::string& path) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe");
  const UniqueFd end(ends[0]);
  UniqueFd kept(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork");
  if (pid == 0) be_thawer(path, end.get());
  return kept;
}

Result<MachineCgroup> MachineCgroup::create(CgroupTree tree) {
  const auto mounted = mount_of(tree);
  if (!mounted) {
    return Error{ErrorCode::unsupported,
                 tree == CgroupTree::v2 ? "no cgroup v2 tree is mounted" : "no freezer of cgroup v1 is mounted"};
  }
  std::string parent = *mounted + own_path(tree);
  if (access(parent.c_str(), F_OK) != 0) parent = *mounted;
  remove_stale(parent);
  const std::string path = (std::filesystem::path(parent) / fmt::format("{}{}", kPrefix, getpid())).string();
  if (mkdir(path.c_str(), 0755) != 0) {
    return Error{ErrorCode::unsupported, system_error("no cgroup can be made: " + path).message};
  }
  return MachineCgroup(path);
}

MachineCgroup::MachineCgroup(MachineCgroup&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

MachineCgroup::~MachineCgroup() {
  if (path_.empty()) return;
  remove_when_empty(path_);
}

}  // namespace lab
