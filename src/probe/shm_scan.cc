// SPDX-License-Identifier: Apache-2.0
// Order of one look: list the files, then look at every process. A user who comes after its process was looked at is
// not seen; whoever removes a file asks the kernel once more (os/shm_files.h).
#include "probe/shm_scan.h"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <set>

#include "os/host.h"
#include "os/shm_tables.h"
#include "os/users.h"
#include "probe/clocks.h"
#include "probe/look_at_processes.h"
#include "probe/shm_deleted.h"
#include "probe/shm_places.h"
#include "probe/visibility.h"
#include "probe/walk.h"

namespace vacate {
namespace {

constexpr std::size_t kLargestTable = std::size_t{16} << 20U;

using FileKey = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

class ShmScanner {
 public:
  ShmScanner(ShmListed listed, ScanMethod method) : method_(method) {
    snapshot_.places = std::move(listed.places);
    snapshot_.segments = std::move(listed.segments);
    spots_ = std::move(listed.blind_spots);
  }
  ShmSnapshot run();

 private:
  void look_for_users(const ProcDirectory& root);
  void read_locks(const ProcDirectory& root);
  void read_sysv(const ProcDirectory& root);
  void take_user(const FileKey& file, ShmUser user);
  void name_users(const std::vector<Process>& processes);

  ScanMethod method_;
  ShmSnapshot snapshot_;
  std::vector<BlindSpot> spots_;
  BlindSpots blind_;
  std::map<FileKey, std::vector<std::size_t>> files_;  ///< several where a file has several names
  std::map<FileKey, std::vector<ShmUser>> others_;     ///< users of what no directory shows
};

void ShmScanner::take_user(const FileKey& file, ShmUser user) {
  const auto known = files_.find(file);
  if (known == files_.end()) {
    others_[file].push_back(user);
    return;
  }
  for (const auto index : known->second) snapshot_.segments[index].users.push_back(user);
}

void ShmScanner::look_for_users(const ProcDirectory& root) {
  std::vector<std::uint64_t> watched;
  for (const auto& place : snapshot_.places) watched.push_back(place.device);
  const DeviceNodes no_nodes({}, {});
  Walker walker(root, no_nodes, snapshot_.host.pid_namespace, watched);
  if (const auto listed = walker.list_processes(); !listed) blind_.add_unlisted(listed.error());
  if (walker.result().processes.empty())
    spots_.push_back({"proc-unlisted", "/proc shows no process at all, not even this one"});
  if (!watched.empty()) {
    const auto looked = look_at_processes(walker, no_nodes, watched, method_);
    const auto& mapped = looked.mappings;
    if (method_ == ScanMethod::bpf && looked.use.used != ScanMethod::bpf) blind_.add_other_scan(looked.use);
    for (const auto& hit : walker.result().files)
      take_user({hit.device, hit.inode},
                {hit.pid, hit.tid == hit.pid ? ShmUse::descriptor : ShmUse::thread_descriptor});
    for (const auto& hit : mapped.hits) take_user({hit.node.first, hit.node.second}, {hit.pid, ShmUse::mapping});
    blind_.add_unreadable(walker.result(), mapped, snapshot_.caller.root);
  }
  Snapshot frame;
  frame.caller = snapshot_.caller;
  frame.host = snapshot_.host;
  blind_.add_hiding(root, frame);
  name_users(walker.result().processes);
}

void ShmScanner::read_locks(const ProcDirectory& root) {
  const auto text = root.read("locks", kLargestTable);
  if (!text) {
    spots_.push_back({"locks-unread", "the locks of files cannot be read: " + text.error().message});
    return;
  }
  const auto table = parse_locks(*text);
  if (!table.complete || text->size() >= kLargestTable)
    spots_.push_back({"locks-unread", "the list of locks of files was not understood to its end"});
  for (const auto& lock : table.locks) {
    const FileKey file{lock.device, lock.inode};
    if (files_.contains(file)) take_user(file, {lock.pid, ShmUse::lock});
  }
}

/// A kernel without System V shared memory has no such table, which is no blind spot.
void ShmScanner::read_sysv(const ProcDirectory& root) {
  const auto text = root.read("sysvipc/shm", kLargestTable);
  if (!text) return;
  const Users users = Users::read();
  for (const auto& row : parse_sysv_segments(*text)) {
    static constexpr std::uint32_t kMarked = 01000;
    ShmSegment segment;
    segment.kind = ShmKind::sysv;
    segment.name = "sysv:" + std::to_string(row.id);
    segment.identity.inode = static_cast<std::uint64_t>(row.id);
    segment.identity.size = row.size;
    segment.size = {row.size};
    segment.on_disk = {row.resident};
    segment.uid = row.uid;
    segment.user = users.name_of(row.uid);
    segment.modified = static_cast<double>(std::max({row.attached_at, row.detached_at, row.changed_at}));
    segment.creator = row.creator;
    segment.last_user = row.last;
    segment.attached = row.attached;
    segment.locked_down = (row.mode & kMarked) != 0;
    if (row.attached > 0) segment.users.push_back({0, ShmUse::attachment});
    snapshot_.segments.push_back(std::move(segment));
  }
}

void ShmScanner::name_users(const std::vector<Process>& processes) {
  std::set<pid_t> pids;
  for (const auto& segment : snapshot_.segments)
    for (const auto& user : segment.users) pids.insert(user.pid);
  for (const auto& [file, users] : others_)
    for (const auto& user : users) pids.insert(user.pid);
  for (const auto& process : processes)
    if (pids.contains(process.key.pid)) snapshot_.titles.emplace_back(process.key.pid, process.comm);
}

void sort_users(std::vector<ShmUser>& users) {
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
}

ShmSnapshot ShmScanner::run() {
  snapshot_.time = seconds_of(CLOCK_REALTIME);
  snapshot_.host = read_host();
  const auto root = ProcDirectory::open_root();
  if (!root) {
    snapshot_.visibility = {{{"no-proc", root.error().message}}, false};
    return std::move(snapshot_);
  }
  snapshot_.host.whole_host = is_whole_host(*root);
  auto caller = read_caller(*root);
  if (!caller) spots_.push_back({"caller-failed", caller.error().message});
  snapshot_.caller = caller ? *std::move(caller) : caller_without_ancestors();
  for (std::size_t i = 0; i < snapshot_.segments.size(); ++i)
    files_[{snapshot_.segments[i].identity.device, snapshot_.segments[i].identity.inode}].push_back(i);
  look_for_users(*root);
  read_locks(*root);
  read_sysv(*root);
  auto unnamed = find_deleted(snapshot_.places, others_);
  snapshot_.deleted = std::move(unnamed.deleted);
  for (auto& segment : snapshot_.segments) sort_users(segment.users);
  for (auto& deleted : snapshot_.deleted) sort_users(deleted.users);
  const bool all_listed = spots_.empty();
  if (!unnamed.complete)
    spots_.push_back(
        {"deleted-uncounted", "what deleted files take that are still in use is at least as much as said"});
  blind_.add(spots_);
  snapshot_.visibility = blind_.take();
  snapshot_.visibility.all_references = snapshot_.visibility.all_references && all_listed;
  return std::move(snapshot_);
}

}  // namespace

Result<ShmSnapshot> scan_shm(const std::vector<std::string>& more, ScanMethod method) {
  auto listed = list_shm(more);
  if (!listed) return listed.error();
  return ShmScanner(*std::move(listed), method).run();
}

}  // namespace vacate
