// SPDX-License-Identifier: Apache-2.0
#include "probe/shm_places.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "os/mounts.h"
#include "os/users.h"
#include "probe/shm_scan.h"

namespace vacate {
namespace {

constexpr std::uint64_t kBlock = 512;

std::string type_of(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFSOCK:
      return "a socket";
    case S_IFIFO:
      return "a FIFO";
    default:
      return "a device";
  }
}

class Lister {
 public:
  Lister() : users_(Users::read()) {
    if (const auto mounts = read_file("/proc/self/mountinfo", kLargestMounts)) mounts_ = parse_mounts(*mounts);
  }

  Result<void> add_place(const std::string& path, bool asked_for);
  void add_huge_pages();
  [[nodiscard]] ShmListed take() { return std::move(listed_); }

 private:
  [[nodiscard]] Result<ShmDirectory> open(const std::string& path) const;
  void add_entries(const ShmDirectory& directory, std::size_t place, const std::string& prefix);
  [[nodiscard]] ShmSegment segment_of(const ShmEntry& entry, std::size_t place, const std::string& prefix) const;
  void note_incomplete(const std::string& path) {
    listed_.blind_spots.push_back({"shm-unlisted", fmt::format("not everything in {} could be listed", path)});
  }

  Users users_;
  std::vector<MountLine> mounts_;                            ///< empty: the kernel's table cannot be read
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;  ///< device and inode of each place
  ShmListed listed_;
};

/// Only file systems of memory are opened: any other may be dead, and opening it would never end.
Result<ShmDirectory> Lister::open(const std::string& path) const {
  const auto device = ShmDirectory::device_of(path);
  if (!device) return device.error();
  const auto is_memory = [&](const MountLine& mount) {
    return mount.device == *device && (mount.type == "tmpfs" || mount.type == "devtmpfs" || mount.type == "hugetlbfs");
  };
  if (!mounts_.empty() && std::none_of(mounts_.begin(), mounts_.end(), is_memory))
    return Error{ErrorCode::refused, path + " is on no tmpfs"};
  return ShmDirectory::open(path, *device);
}

Result<void> Lister::add_place(const std::string& path, bool asked_for) {
  auto directory = open(path);
  if (!directory && !asked_for) {
    if (directory.error().code != ErrorCode::gone && directory.error().code != ErrorCode::refused)
      listed_.blind_spots.push_back({"shm-unlisted", directory.error().message});
    return {};
  }
  if (!directory) return Error{ErrorCode::malformed, "--path: " + directory.error().message};
  const auto system = directory->file_system();
  if (!system) return Error{ErrorCode::malformed, "--path: " + system.error().message};
  if (!system->tmpfs && !system->huge_pages) {
    if (!asked_for) return {};
    return Error{ErrorCode::malformed, fmt::format("--path: {} is on no tmpfs", path)};
  }
  // The same directory twice, whatever it is called, would count everything twice.
  if (!known_.insert({system->device, system->inode}).second) return {};
  if (listed_.places.size() >= kMostShmPlaces) {
    if (asked_for) return Error{ErrorCode::malformed, fmt::format("--path: more than {} directories", kMostShmPlaces)};
    note_incomplete(path);
    return {};
  }
  ShmPlace place;
  place.path = path;
  place.device = system->device;
  place.read_only = system->read_only;
  place.huge_pages = system->huge_pages;
  place.size = system->size;
  place.used = system->used;
  listed_.places.push_back(std::move(place));
  add_entries(*directory, listed_.places.size() - 1, "");
  return {};
}

/// What is mounted over a hugetlbfs is no place: nobody asked for it.
void Lister::add_huge_pages() {
  for (const auto& mount : mounts_) {
    if (mount.type != "hugetlbfs" || !is_on_top(mount, mounts_)) continue;
    const auto device = ShmDirectory::device_of(mount.point);
    if (device && *device == mount.device) (void)add_place(mount.point, false);
  }
}

void Lister::add_entries(const ShmDirectory& directory, std::size_t place, const std::string& prefix) {
  const auto listing = directory.list();
  if (!listing.complete) note_incomplete(listed_.places[place].path + "/" + prefix);
  for (const auto& entry : listing.entries) {
    listed_.segments.push_back(segment_of(entry, place, prefix));
    const bool is_folder =
        prefix.empty() && (entry.mode & S_IFMT) == S_IFDIR && !entry.mount_point && is_segment_folder(entry.name);
    if (!is_folder) continue;
    const auto below = directory.open_below(entry.name);
    if (below)
      add_entries(*below, place, entry.name + "/");
    else if (below.error().code != ErrorCode::gone && below.error().code != ErrorCode::refused)
      note_incomplete(listed_.places[place].path + "/" + entry.name);
  }
}

ShmSegment Lister::segment_of(const ShmEntry& entry, std::size_t place, const std::string& prefix) const {
  ShmSegment segment;
  const bool is_file = (entry.mode & S_IFMT) == S_IFREG && !entry.mount_point;
  segment.kind = !is_file ? ShmKind::other : listed_.places[place].huge_pages ? ShmKind::huge_page : ShmKind::file;
  segment.name = prefix + entry.name;
  segment.place = place;
  segment.identity = entry.identity;
  if (entry.mount_point)
    segment.type = "a mount point";
  else if (!is_file)
    segment.type = type_of(entry.mode);
  segment.locked_down = entry.locked_down;
  segment.size = {entry.identity.size};
  segment.on_disk = {entry.blocks * kBlock};
  segment.uid = entry.uid;
  segment.user = users_.name_of(entry.uid);
  segment.modified = static_cast<double>(entry.identity.modified) / 1e9;
  return segment;
}

}  // namespace

bool is_segment_folder(std::string_view name) noexcept { return name.starts_with("joblib_memmapping_folder_"); }

Result<ShmListed> list_shm(const std::vector<std::string>& more) {
  Lister lister;
  (void)lister.add_place(kShmPath, false);
  for (const auto& path : more)
    if (auto added = lister.add_place(path, true); !added) return added.error();
  lister.add_huge_pages();
  return lister.take();
}

}  // namespace vacate
