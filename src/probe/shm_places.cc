// SPDX-License-Identifier: Apache-2.0
#include "probe/shm_places.h"

#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
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
  Lister() : users_(Users::read()) {}

  Result<void> add_place(const std::string& path, bool asked_for);
  void add_huge_pages();
  [[nodiscard]] ShmListed take() { return std::move(listed_); }

 private:
  void add_entries(const ShmDirectory& directory, std::size_t place, const std::string& prefix);
  [[nodiscard]] ShmSegment segment_of(const ShmEntry& entry, std::size_t place, const std::string& prefix) const;
  void note_incomplete(const std::string& path) {
    listed_.blind_spots.push_back({"shm-unlisted", fmt::format("not everything in {} could be listed", path)});
  }

  Users users_;
  ShmListed listed_;
};

Result<void> Lister::add_place(const std::string& path, bool asked_for) {
  auto directory = ShmDirectory::open(path);
  if (!directory && !asked_for) {
    if (directory.error().code != ErrorCode::gone)
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
  // The same directory twice would count everything twice.
  const auto is_known = [&](const ShmPlace& place) { return place.path == path; };
  if (std::any_of(listed_.places.begin(), listed_.places.end(), is_known)) return {};
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

void Lister::add_huge_pages() {
  const auto mounts = read_file("/proc/self/mountinfo", std::size_t{4} << 20U);
  if (!mounts) return;
  for (const auto& path : parse_huge_page_mounts(*mounts)) (void)add_place(path, false);
}

void Lister::add_entries(const ShmDirectory& directory, std::size_t place, const std::string& prefix) {
  const auto listing = directory.list();
  if (!listing.complete) note_incomplete(listed_.places[place].path + "/" + prefix);
  for (const auto& entry : listing.entries) {
    listed_.segments.push_back(segment_of(entry, place, prefix));
    const bool is_folder = prefix.empty() && (entry.mode & S_IFMT) == S_IFDIR && is_segment_folder(entry.name);
    if (!is_folder) continue;
    const auto below = directory.open_below(entry.name);
    if (below)
      add_entries(*below, place, entry.name + "/");
    else if (below.error().code != ErrorCode::gone)
      note_incomplete(listed_.places[place].path + "/" + entry.name);
  }
}

ShmSegment Lister::segment_of(const ShmEntry& entry, std::size_t place, const std::string& prefix) const {
  ShmSegment segment;
  const bool is_file = (entry.mode & S_IFMT) == S_IFREG;
  segment.kind = !is_file ? ShmKind::other : listed_.places[place].huge_pages ? ShmKind::huge_page : ShmKind::file;
  segment.name = prefix + entry.name;
  segment.place = place;
  segment.identity = entry.identity;
  if (!is_file) segment.type = type_of(entry.mode);
  segment.locked_down = entry.locked_down;
  segment.size = {entry.identity.size};
  segment.on_disk = {entry.blocks * kBlock};
  segment.uid = entry.uid;
  segment.user = users_.name_of(entry.uid);
  segment.modified = static_cast<double>(entry.identity.modified) / 1e9;
  return segment;
}

/// mountinfo writes blanks and the like as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return static_cast<unsigned>(text[i + at] - '0'); };
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() && digit(1) < 4 && digit(2) < 8 && digit(3) < 8;
    if (!is_escape) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(digit(1) * 64 + digit(2) * 8 + digit(3));
    i += 3;
  }
  return plain;
}

}  // namespace

std::vector<std::string> parse_huge_page_mounts(std::string_view mountinfo) {
  static constexpr std::size_t kPoint = 4;
  std::vector<std::string> points;
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - hugetlbfs ");
    if (dash == std::string_view::npos) continue;
    const auto words = split(line.substr(0, dash), ' ');
    if (words.size() > kPoint && words[kPoint].starts_with('/')) points.push_back(unescaped(words[kPoint]));
  }
  return points;
}

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
