// SPDX-License-Identifier: Apache-2.0
// Who may answer for a segment that nobody maps right now: its creator, by the number that the name has of it, and
// Python's resource trackers. Both can only keep a segment, never give one up.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "os/expendable_pass.h"
#include "os/mounts.h"
#include "os/procfs.h"
#include "probe/clocks.h"
#include "probe/shm_places.h"
#include "probe/shm_scan.h"

namespace vacate {
namespace {

constexpr std::size_t kLongestTrackerCommand = std::size_t{1} << 20U;
constexpr std::string_view kTracker = "resource_tracker import main";
constexpr std::string_view kOldTracker = "semaphore_tracker import main";  ///< Python 3.7 and before

/// What a process sees of the places.
struct View {
  std::uint64_t places = ~std::uint64_t{0};                    ///< a bit each
  std::vector<std::pair<std::uint64_t, std::string>> mounted;  ///< ShmSnapshot::mounted
};

constexpr std::size_t kMostMounted = 65536;

/// Parts of the places that are mounted on their own.
void add_mounted(const std::vector<MountLine>& mounts, const std::vector<ShmPlace>& places,
                 std::vector<std::pair<std::uint64_t, std::string>>& mounted) {
  for (const auto& mount : mounts) {
    const bool is_ours =
        std::any_of(places.begin(), places.end(), [&](const ShmPlace& place) { return place.device == mount.device; });
    if (is_ours && mount.root != "/" && mounted.size() < kMostMounted) mounted.emplace_back(mount.device, mount.root);
  }
}

/// Which of `places` the process may see, under whatever path: by the device of each of its mounts. One whose view
/// cannot be told counts as seeing all.
View look_around(const ProcDirectory& process, std::uint64_t own_mounts, const std::vector<ShmPlace>& places) {
  const auto namespace_of = process.identity("ns/mnt");
  if (!namespace_of || namespace_of->inode == own_mounts) return {};
  const auto table = process.read("mountinfo", kLargestMounts);
  if (!table || table->empty()) return {};
  View sight;
  const auto mounts = parse_mounts(*table);
  add_mounted(mounts, places, sight.mounted);
  std::set<std::uint64_t> devices;
  for (const auto& mount : mounts) devices.insert(mount.device);
  // In a chroot the table does not show the mount that the process itself is in.
  for (const char* own : {"root", "cwd"}) {
    const auto there = process.identity(own);
    if (!there) return {~std::uint64_t{0}, std::move(sight.mounted)};
    devices.insert(there->device);
  }
  if (table->size() >= kLargestMounts) return sight;
  sight.places = 0;
  for (std::size_t i = 0; i < places.size() && i < kMostShmPlaces; ++i)
    if (devices.contains(places[i].device)) sight.places |= std::uint64_t{1} << i;
  return sight;
}

/// Python's tracker has its program in its command line, behind whatever options Python was given. A line that cannot
/// be read, or not to its end, may be a tracker's.
bool may_be_tracker(const ProcDirectory& process) {
  const auto line = process.read("cmdline", kLongestTrackerCommand);
  if (!line) return line.error().code != ErrorCode::gone;
  return line->size() >= kLongestTrackerCommand || line->find(kTracker) != std::string::npos ||
         line->find(kOldTracker) != std::string::npos;
}

/// What the first byte of an answer says.
enum class Look : std::uint8_t { ended, there, failed };

/// In the child: the command line can block for ever.
void look_at(const ProcDirectory& root, pid_t pid, const std::vector<ShmPlace>& places, FrameWriter& answer) {
  const auto own = root.identity("self/ns/mnt");
  const auto process = root.open(pid);
  const auto status = process ? process->status() : Result<ProcStatus>(process.error());
  const auto stat = process ? process->stat() : Result<ProcStat>(process.error());
  // A zombie without live threads answers for nothing.
  const bool has_ended = stat && stat->has_ended();
  const bool is_there = status && stat && !stat->is_kernel_thread() && !has_ended;
  const bool failed =
      (!status && status.error().code != ErrorCode::gone) || (!stat && stat.error().code != ErrorCode::gone);
  answer.number(static_cast<std::uint8_t>(failed ? Look::failed : is_there ? Look::there : Look::ended));
  if (!is_there || failed) return;
  answer.number(static_cast<std::int32_t>(status->ns_pids.empty() ? pid : status->ns_pids.back()));
  answer.number(static_cast<std::uint32_t>(status->effective_uid.value_or(0)));
  answer.number(stat->start_ticks);
  answer.number(static_cast<std::uint8_t>(may_be_tracker(*process)));
  const auto sight = look_around(*process, own ? own->inode : 0, places);
  answer.number(sight.places);
  answer.number(static_cast<std::uint32_t>(sight.mounted.size()));
  for (const auto& [device, path] : sight.mounted) {
    answer.number(device);
    answer.text(path);
  }
}

void read_mounted(FrameReader& answer, std::set<std::pair<std::uint64_t, std::string>>& mounted) {
  static constexpr std::size_t kSmallest = 12;
  const auto count = answer.count(kSmallest);
  for (std::uint32_t i = 0; i < count && !answer.failed(); ++i) {
    const auto device = answer.number<std::uint64_t>();
    std::string path(answer.text());
    if (!answer.failed() && mounted.size() < kMostMounted) mounted.emplace(device, std::move(path));
  }
}

}  // namespace

void read_keepers(ShmSnapshot& snapshot) {
  const auto root = ProcDirectory::open_root();
  DirectoryReader reader;
  const auto pids = root ? list_numbers(*root, reader) : Result<std::vector<pid_t>>(root.error());
  if (!pids) {
    snapshot.visibility.all_references = false;
    snapshot.visibility.blind_spots.push_back({"proc-unlisted", pids.error().message});
    return;
  }
  const double boot = boot_time();
  const double ticks = std::max(1.0, static_cast<double>(sysconf(_SC_CLK_TCK)));
  std::set<std::pair<std::uint64_t, std::string>> mounted;
  ExpendablePass pass("vacate-keepers", pids->size(), [&](std::size_t index, FrameWriter& answer) {
    const auto own_root = ProcDirectory::open_root();  // the child has no descriptor of its parent's
    if (own_root)
      look_at(*own_root, (*pids)[index], snapshot.places, answer);
    else
      answer.number(static_cast<std::uint8_t>(Look::failed));
  });
  std::size_t failed = 0;
  const auto missing = pass.finish([&](std::size_t index, std::string_view bytes) {
    FrameReader answer(bytes);
    const auto look = static_cast<Look>(answer.number<std::uint8_t>());
    if (look == Look::failed) ++failed;
    if (look != Look::there) return;
    ShmKeeper keeper;
    keeper.pid = (*pids)[index];
    keeper.own_pid = answer.number<std::int32_t>();
    keeper.uid = answer.number<std::uint32_t>();
    keeper.started = boot + static_cast<double>(answer.number<std::uint64_t>()) / ticks;
    keeper.resource_tracker = answer.number<std::uint8_t>() != 0;
    const auto mask = answer.number<std::uint64_t>();
    for (std::size_t i = 0; i < snapshot.places.size() && i < kMostShmPlaces; ++i)
      if (((mask >> i) & 1U) != 0) keeper.devices.push_back(snapshot.places[i].device);
    std::sort(keeper.devices.begin(), keeper.devices.end());
    read_mounted(answer, mounted);
    if (answer.complete()) snapshot.keepers.push_back(std::move(keeper));
  });
  if (const auto own = root->read("self/mountinfo", kLargestMounts)) {
    std::vector<std::pair<std::uint64_t, std::string>> here;
    add_mounted(parse_mounts(*own), snapshot.places, here);
    mounted.insert(here.begin(), here.end());
  }
  snapshot.mounted.assign(mounted.begin(), mounted.end());
  if (failed > 0) {
    snapshot.visibility.all_references = false;
    snapshot.visibility.blind_spots.push_back(
        {"keepers-failed", std::to_string(failed) + " processes cannot be read about"});
  }
  if (missing.empty()) return;
  snapshot.visibility.all_references = false;
  snapshot.visibility.blind_spots.push_back(
      {"keepers-timeout", "reading about " + std::to_string(missing.size()) + " processes blocks"});
}

}  // namespace vacate
