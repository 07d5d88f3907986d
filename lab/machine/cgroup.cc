// SPDX-License-Identifier: Apache-2.0
// See cgroup.h.
#include "lab/machine/cgroup.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

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
using vacate::UniqueFd;

constexpr std::string_view kPrefix = "vacate-lab.";

/// Mount point of the cgroup v2 tree. In mountinfo the file system type comes after " - ".
std::optional<std::string> tree() {
  const std::string table = read_file("/proc/self/mountinfo");
  for (const std::string_view line : vacate::split(table, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    const auto fields = vacate::split(line, ' ');
    if (fields.size() > 4) return std::string(fields[4]);
  }
  return std::nullopt;
}

std::string own_path() {
  const std::string table = read_file("/proc/self/cgroup");
  for (const std::string_view line : vacate::split(table, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return "/";
}

int remove_directory(const char* path, const struct stat* /*info*/, int type, FTW* /*where*/) {
  if (type == FTW_DP) rmdir(path);
  return 0;
}

void remove_groups(const std::string& path) { nftw(path.c_str(), remove_directory, 16, FTW_DEPTH | FTW_PHYS); }

/// Directories of machines whose lab was killed. An occupied one cannot be removed, so that a wrong guess does no harm.
void remove_stale(const std::string& parent) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(parent, problem)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto maker = vacate::parse_unsigned(std::string_view(name).substr(kPrefix.size()));
    if (maker && kill(static_cast<pid_t>(*maker), 0) != 0 && errno == ESRCH) remove_groups(entry.path().string());
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

}  // namespace

Result<MachineCgroup> MachineCgroup::create() {
  const auto mounted = tree();
  if (!mounted) return Error{ErrorCode::unsupported, "no cgroup v2 tree is mounted"};
  std::string parent = *mounted + own_path();
  if (access(parent.c_str(), F_OK) != 0) parent = *mounted;
  remove_stale(parent);
  const std::string path = (std::filesystem::path(parent) / fmt::format("{}{}", kPrefix, getpid())).string();
  if (mkdir(path.c_str(), 0755) != 0) {
    return Error{ErrorCode::unsupported, vacate::system_error("no cgroup can be made: " + path).message};
  }
  return MachineCgroup(path);
}

MachineCgroup::MachineCgroup(MachineCgroup&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

MachineCgroup::~MachineCgroup() {
  if (path_.empty()) return;
  wait_until_empty(path_);
  remove_groups(path_);
}

}  // namespace lab
