// SPDX-License-Identifier: Apache-2.0
#include "probe/shm_deleted.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "os/expendable_pass.h"
#include "os/procfs.h"

namespace vacate {
namespace {

using FileKey = std::pair<std::uint64_t, std::uint64_t>;

/// One file, as one of its users shows it.
struct Sight {
  std::string name;
  std::uint64_t blocks = 0;
  std::uint32_t links = 1;
  bool measured = false;  ///< the last two are known
  bool unnamed = false;   ///< what it is called says that it was deleted, and there is no such file
};

/// Of one process.
struct Sights {
  std::map<FileKey, Sight> files;
  bool complete = true;
};

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::size_t kLongestFileName = 512;
constexpr std::size_t kMostFiles = 4096;  ///< of one process
constexpr std::size_t kLargestMaps = std::size_t{16} << 20U;

std::string without_mark(std::string_view name) {
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  return std::string(name.substr(0, kLongestFileName));
}

/// In the child: asks the file itself, through the link that leads to it.
void measure(const ProcDirectory& process, const std::string& link, const FileKey& file, Sight& sight) {
  struct statx answer {};
  if (statx(process.descriptor(), link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &answer) != 0)
    return;
  if (makedev(answer.stx_dev_major, answer.stx_dev_minor) != file.first || answer.stx_ino != file.second) return;
  sight.blocks = answer.stx_blocks;
  sight.links = answer.stx_nlink;
  sight.measured = true;
}

/// In the child: is the file without a name, as `name` says with its mark? A file may be called so.
bool is_unnamed(const ProcDirectory& process, std::string_view name, const FileKey& file) {
  if (!name.ends_with(kDeleted) || !name.starts_with('/')) return false;
  const auto there = process.identity(("root" + std::string(name)).c_str());
  return !there || there->device != file.first || there->inode != file.second;
}

/// In the child: everything unnamed that `pid` maps or has open.
Sights look_at(pid_t pid, const std::set<FileKey>& wanted) {
  Sights seen;
  auto& sights = seen.files;
  const auto has_room = [&] {
    seen.complete = seen.complete && sights.size() < kMostFiles;
    return sights.size() < kMostFiles;
  };
  const auto root = ProcDirectory::open_root();
  const auto process = root ? root->open(pid) : Result<ProcDirectory>(root.error());
  if (!process) return seen;
  if (const auto maps = process->read("maps", kLargestMaps)) {
    seen.complete = maps->size() < kLargestMaps;
    for (const auto line : split(*maps, '\n')) {
      const auto mapping = parse_maps_line(line);
      if (!mapping) continue;
      const FileKey file{mapping->device, mapping->inode};
      if (!wanted.contains(file) || sights.contains(file) || !has_room()) continue;
      auto& sight = sights[file];
      sight.name = without_mark(mapping->path);
      sight.unnamed = is_unnamed(*process, mapping->path, file);
      measure(*process, "map_files/" + std::string(mapping->range), file, sight);
    }
  }
  const auto descriptors = process->open("fd");
  DirectoryReader reader;
  if (!descriptors) return seen;
  reader.start(descriptors->descriptor());
  while (const char* name = reader.next()) {
    const auto identity = descriptors->identity(name);
    if (!identity) continue;
    const FileKey file{identity->device, identity->inode};
    const bool is_new = wanted.contains(file) && (!sights.contains(file) || !sights[file].measured);
    if (!is_new || (!sights.contains(file) && !has_room())) continue;
    auto& sight = sights[file];
    if (const auto link = process->read_link(("fd/" + std::string(name)).c_str())) {
      sight.name = without_mark(*link);
      sight.unnamed = is_unnamed(*process, *link, file);
    }
    measure(*process, "fd/" + std::string(name), file, sight);
  }
  return seen;
}

void write_sights(const Sights& seen, FrameWriter& answer) {
  const auto& sights = seen.files;
  answer.number(static_cast<std::uint8_t>(seen.complete));
  answer.number(static_cast<std::uint32_t>(sights.size()));
  for (const auto& [file, sight] : sights) {
    answer.number(file.first);
    answer.number(file.second);
    answer.number(sight.blocks);
    answer.number(sight.links);
    answer.number(static_cast<std::uint8_t>(sight.measured));
    answer.number(static_cast<std::uint8_t>(sight.unnamed));
    answer.text(sight.name);
  }
}

void read_sights(std::string_view bytes, Sights& seen) {
  static constexpr std::size_t kSmallest = 34;
  FrameReader answer(bytes);
  seen.complete = answer.number<std::uint8_t>() != 0 && seen.complete;
  const auto count = answer.count(kSmallest);
  for (std::uint32_t i = 0; i < count && !answer.failed(); ++i) {
    FileKey file;
    file.first = answer.number<std::uint64_t>();
    file.second = answer.number<std::uint64_t>();
    Sight sight;
    sight.blocks = answer.number<std::uint64_t>();
    sight.links = answer.number<std::uint32_t>();
    sight.measured = answer.number<std::uint8_t>() != 0;
    sight.unnamed = answer.number<std::uint8_t>() != 0;
    sight.name = std::string(answer.text());
    if (answer.failed()) return;
    auto& known = seen.files[file];
    if (!known.measured) known = std::move(sight);
  }
}

}  // namespace

DeletedSeen find_deleted(const std::vector<ShmPlace>& places, const std::map<FileKey, std::vector<ShmUser>>& used) {
  static constexpr std::uint64_t kBlock = 512;
  std::set<FileKey> wanted;
  std::set<pid_t> pids;
  for (const auto& [file, users] : used) {
    wanted.insert(file);
    for (const auto& user : users) pids.insert(user.pid);
  }
  if (wanted.empty()) return {};
  const std::vector<pid_t> items(pids.begin(), pids.end());
  Sights seen;
  ExpendablePass pass("vacate-deleted", items.size(), [&](std::size_t index, FrameWriter& answer) {
    write_sights(look_at(items[index], wanted), answer);
  });
  const auto missing = pass.finish([&](std::size_t, std::string_view bytes) { read_sights(bytes, seen); });
  DeletedSeen result;
  result.complete = seen.complete && missing.empty();
  for (const auto& [file, users] : used) {
    const auto sight = seen.files.find(file);
    if (sight == seen.files.end()) continue;  // its users are gone, and it with them
    if (sight->second.measured ? sight->second.links > 0 : !sight->second.unnamed) continue;
    const auto device = file.first;
    const auto place = std::find_if(places.begin(), places.end(),
                                    [&](const ShmPlace& candidate) { return candidate.device == device; });
    if (place == places.end()) continue;
    DeletedShm entry;
    entry.place = static_cast<std::size_t>(place - places.begin());
    entry.inode = file.second;
    entry.name = sight->second.name;
    entry.on_disk = sight->second.measured ? Reading<Bytes>(Bytes{sight->second.blocks * kBlock})
                                           : Reading<Bytes>(Unknown::no_permission);
    entry.users = users;
    result.deleted.push_back(std::move(entry));
  }
  return result;
}

}  // namespace vacate
