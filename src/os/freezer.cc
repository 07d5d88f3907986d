// SPDX-License-Identifier: Apache-2.0
#include "os/freezer.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "model/process.h"
#include "os/procfs.h"

namespace vacate {
namespace {

constexpr std::size_t kMostGroups = 4096;
constexpr std::size_t kMostMembers = 65536;
constexpr unsigned kDeepestTree = 64;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// The file that tells whether a group was frozen itself, not by one above it, and what thaws it.
struct Files {
  const char* frozen_itself;
  const char* thaw;
  std::string_view thaw_word;
};
constexpr Files kV1{"freezer.self_freezing", "freezer.state", "THAWED"};
constexpr Files kV2{"cgroup.freeze", "cgroup.freeze", "0"};

const Files& files_of(Freezer freezer) noexcept { return freezer == Freezer::v1 ? kV1 : kV2; }

Result<std::string> read_at(int directory, const char* name, std::size_t most) {
  const UniqueFd fd(openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return system_error(name);
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(name);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
    if (text.size() > most) return Error{ErrorCode::malformed, fmt::format("{} is too long", name)};
  }
}

Result<UniqueFd> open_mount(const std::string& point, Freezer freezer) {
  if (point.empty()) return Error{ErrorCode::gone, "no freezer is mounted"};
  UniqueFd fd(::open(point.c_str(), kDirectory));
  if (!fd) return system_error(point);
  struct statfs system {};
  const auto wanted = freezer == Freezer::v1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;
  if (fstatfs(fd.get(), &system) != 0 || system.f_type != wanted)
    return Error{ErrorCode::malformed, point + " holds no control groups"};
  return fd;
}

/// Parts of a path below the mount point; nothing for one that leads elsewhere.
std::optional<std::vector<std::string>> parts_of(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    if (part == "." || part == ".." || parts.size() >= kDeepestTree) return std::nullopt;
    parts.emplace_back(part);
  }
  return parts;
}

Result<UniqueFd> open_below(int directory, const std::string& name) {
  UniqueFd fd(openat(directory, name.c_str(), kDirectory));
  if (!fd) return system_error(name);
  return fd;
}

bool is_frozen_itself(int directory, Freezer freezer) {
  const auto text = read_at(directory, files_of(freezer).frozen_itself, 64);
  return text && trim(*text) == "1";
}

/// A group and all below it.
struct Tree {
  std::vector<UniqueFd> groups;  ///< parents before their children
  std::vector<pid_t> members;    ///< sorted
};

Result<void> add_members(int directory, std::vector<pid_t>& members) {
  const auto text = read_at(directory, "cgroup.procs", kMostMembers * 12);
  if (!text) return text.error();
  for (const auto line : split(*text, '\n')) {
    if (line.empty()) continue;
    const auto pid = parse_unsigned(line);
    // 0: a process of another pid namespace.
    if (!pid || *pid == 0 || *pid > kLargestPid) return Error{ErrorCode::denied, "it has members that cannot be seen"};
    members.push_back(static_cast<pid_t>(*pid));
  }
  if (members.size() > kMostMembers) return Error{ErrorCode::malformed, "it has too many members"};
  return {};
}

Result<std::vector<std::string>> children_of(int directory) {
  UniqueFd copy(openat(directory, ".", kDirectory));
  if (!copy) return system_error("a control group");
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(copy.get()), closedir);
  if (!list) return system_error("a control group");
  (void)copy.release();
  std::vector<std::string> names;
  while (const auto* entry = readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
    if (names.size() > kMostGroups) return Error{ErrorCode::malformed, "it has too many groups below it"};
  }
  return names;
}

Result<Tree> read_tree(UniqueFd top) {
  Tree tree;
  tree.groups.push_back(std::move(top));
  for (std::size_t i = 0; i < tree.groups.size(); ++i) {
    const int group = tree.groups[i].get();
    if (auto added = add_members(group, tree.members); !added) return added.error();
    const auto names = children_of(group);
    if (!names) return names.error();
    for (const auto& name : *names) {
      if (tree.groups.size() >= kMostGroups) return Error{ErrorCode::malformed, "it has too many groups below it"};
      auto child = open_below(group, name);
      if (!child && child.error().code == ErrorCode::gone) continue;
      if (!child) return child.error();
      tree.groups.push_back(*std::move(child));
    }
  }
  std::sort(tree.members.begin(), tree.members.end());
  tree.members.erase(std::unique(tree.members.begin(), tree.members.end()), tree.members.end());
  return tree;
}

Result<UniqueFd> open_group(const std::string& mount, const ThawTarget& group) {
  const auto parts = parts_of(group.path);
  if (!parts || parts->empty()) return Error{ErrorCode::malformed, "no control group below the root"};
  auto directory = open_mount(mount, group.freezer);
  for (std::size_t i = 0; directory && i < parts->size(); ++i) directory = open_below(directory->get(), (*parts)[i]);
  return directory;
}

Result<void> write_thaw(int directory, Freezer freezer) {
  const auto& files = files_of(freezer);
  const UniqueFd fd(openat(directory, files.thaw, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || ::write(fd.get(), files.thaw_word.data(), files.thaw_word.size()) < 0) return system_error(files.thaw);
  return {};
}

Unknown reason_of_members(const Error& error) {
  return error.code == ErrorCode::denied ? Unknown::no_permission : Unknown::failed;
}

std::optional<FrozenGroup> topmost_frozen(const std::string& mount, const std::string& path, Freezer freezer) {
  const auto parts = parts_of(path);
  auto directory = parts ? open_mount(mount, freezer) : Result<UniqueFd>(Error{ErrorCode::malformed, path});
  FrozenGroup group;
  group.freezer = freezer;
  for (std::size_t i = 0; directory && i < parts->size(); ++i) {
    directory = open_below(directory->get(), (*parts)[i]);
    if (!directory) break;
    group.path += "/" + (*parts)[i];
    if (!is_frozen_itself(directory->get(), freezer)) continue;
    auto tree = read_tree(*std::move(directory));
    if (tree)
      group.members = std::move(tree->members);
    else
      group.members = reason_of_members(tree.error());
    return group;
  }
  return std::nullopt;
}

}  // namespace

FreezerPaths parse_freezer_paths(std::string_view proc_cgroup) {
  FreezerPaths paths;
  for (const auto line : split(proc_cgroup, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty() && line.substr(0, first) == "0") paths.v2 = path;
    const auto words = split(controllers, ',');
    if (std::find(words.begin(), words.end(), "freezer") != words.end()) paths.v1 = path;
  }
  return paths;
}

FreezerMounts parse_freezer_mounts(std::string_view mountinfo) {
  FreezerMounts mounts;
  for (auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto head = split(line.substr(0, dash), ' ');
    const auto tail = split(line.substr(dash + 3), ' ');
    // A part of a hierarchy mounted alone: paths would not fit.
    if (head.size() < 5 || tail.size() < 3 || head[3] != "/") continue;
    const auto options = split(tail[2], ',');
    if (tail[0] == "cgroup2") mounts.v2 = head[4];
    if (tail[0] == "cgroup" && std::find(options.begin(), options.end(), "freezer") != options.end())
      mounts.v1 = head[4];
  }
  return mounts;
}

Freezers Freezers::read() {
  const auto text = read_file("/proc/self/mountinfo");
  return Freezers(text ? parse_freezer_mounts(*text) : FreezerMounts{});
}

std::optional<FrozenGroup> Freezers::frozen_group(const FreezerPaths& paths) const {
  std::optional<FrozenGroup> group;
  if (paths.v1) group = topmost_frozen(mounts_.v1, *paths.v1, Freezer::v1);
  if (!group && paths.v2) group = topmost_frozen(mounts_.v2, *paths.v2, Freezer::v2);
  return group;
}

Result<void> Freezers::thaw(const ThawTarget& group, const std::function<bool(pid_t)>& is_expected) const {
  auto directory = open_group(mount_of(group.freezer), group);
  if (!directory) return directory.error();
  auto tree = read_tree(*std::move(directory));
  if (!tree) return tree.error();
  const auto stranger =
      std::find_if(tree->members.begin(), tree->members.end(), [&](pid_t pid) { return !is_expected(pid); });
  if (stranger != tree->members.end())
    return Error{ErrorCode::refused, fmt::format("process {} is in it, which is not ended", *stranger)};
  for (const auto& each : tree->groups) {
    if (!is_frozen_itself(each.get(), group.freezer)) continue;
    if (auto thawed = write_thaw(each.get(), group.freezer); !thawed) return thawed;
  }
  return {};
}

}  // namespace vacate
