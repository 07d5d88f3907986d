// SPDX-License-Identifier: Apache-2.0
#include "os/shm_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace vacate {
namespace {

constexpr std::size_t kMostEntries = 1'000'000;
constexpr unsigned kWanted = STATX_BASIC_STATS;

Result<ShmEntry> ask_for_entry(int directory, const char* name, int flags) {
  struct statx answer {};
  if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | flags, kWanted, &answer) != 0)
    return system_error("statx");
  ShmEntry entry;
  entry.name = name;
  entry.mode = answer.stx_mode;
  entry.identity.device = makedev(answer.stx_dev_major, answer.stx_dev_minor);
  entry.identity.inode = answer.stx_ino;
  entry.identity.size = answer.stx_size;
  entry.identity.modified = std::int64_t{answer.stx_mtime.tv_sec} * 1'000'000'000 + answer.stx_mtime.tv_nsec;
  entry.identity.links = answer.stx_nlink;
  entry.blocks = answer.stx_blocks;
  entry.uid = answer.stx_uid;
  entry.locked_down = (answer.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
  entry.mount_point = (answer.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return entry;
}

/// Of `name` in a directory on `device`. A file system of somebody's own (FUSE) that is mounted there may tell us
/// nothing: the kernel always tells its device.
Result<ShmEntry> ask_in(int directory, const char* name, std::uint64_t device) {
  auto entry = ask_for_entry(directory, name, AT_SYMLINK_NOFOLLOW);
  if (entry) {
    entry->mount_point = entry->mount_point || entry->identity.device != device;
    return entry;
  }
  struct statx answer {};
  if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW, 0, &answer) != 0) return entry;
  ShmEntry other;
  other.name = name;
  other.identity.device = makedev(answer.stx_dev_major, answer.stx_dev_minor);
  other.mount_point = other.identity.device != device;
  if (!other.mount_point) return entry;
  return other;
}

/// The directory that `path` was opened as a path only, for reading.
Result<UniqueFd> for_reading(const UniqueFd& path, const std::string& name) {
  UniqueFd fd(openat(path.get(), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_error(name);
  return fd;
}

}  // namespace

Result<std::uint64_t> ShmDirectory::device_of(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return system_error(path);
  struct statx answer {};
  if (statx(fd.get(), "", AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_EMPTY_PATH, 0, &answer) != 0)
    return system_error(path);
  return makedev(answer.stx_dev_major, answer.stx_dev_minor);
}

Result<ShmDirectory> ShmDirectory::open(const std::string& path, std::optional<std::uint64_t> device) {
  const UniqueFd there(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!there) return system_error(path);
  if (device) {
    const auto now = ask_for_entry(there.get(), "", AT_EMPTY_PATH);
    if (!now) return now.error();
    if (now->identity.device != *device) return Error{ErrorCode::refused, path + " is another file system by now"};
  }
  auto fd = for_reading(there, path);
  if (!fd) return fd.error();
  return ShmDirectory(*std::move(fd));
}

Result<ShmDirectory> ShmDirectory::open_below(const std::string& name) const {
  const UniqueFd there(openat(directory_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!there) return system_error(name);
  const auto own = ask_for_entry(directory_.get(), "", AT_EMPTY_PATH);
  const auto below = ask_for_entry(there.get(), "", AT_EMPTY_PATH);
  if (!own) return own.error();
  if (!below || below->mount_point || below->identity.device != own->identity.device)
    return Error{ErrorCode::refused, "something is mounted on " + name};
  auto fd = for_reading(there, name);
  if (!fd) return fd.error();
  return ShmDirectory(*std::move(fd));
}

Result<ShmFileSystem> ShmDirectory::file_system() const {
  struct statfs answer {};
  if (fstatfs(directory_.get(), &answer) != 0) return system_error("statfs");
  const auto root = ask_for_entry(directory_.get(), "", AT_EMPTY_PATH);
  if (!root) return root.error();
  ShmFileSystem system;
  system.tmpfs = answer.f_type == TMPFS_MAGIC;
  system.huge_pages = answer.f_type == HUGETLBFS_MAGIC;
  system.read_only = (static_cast<unsigned long>(answer.f_flags) & ST_RDONLY) != 0;
  system.device = root->identity.device;
  system.inode = root->identity.inode;
  const auto unit = static_cast<std::uint64_t>(answer.f_bsize);
  if (answer.f_blocks == 0) {
    system.size = system.used = Unknown::not_supported;  // mounted without a limit: the kernel counts nothing
  } else {
    system.size = Bytes{answer.f_blocks * unit};
    system.used = Bytes{(answer.f_blocks - answer.f_bfree) * unit};
  }
  return system;
}

ShmListing ShmDirectory::list() const {
  ShmListing listing;
  const auto own = ask_for_entry(directory_.get(), "", AT_EMPTY_PATH);
  if (!own) return {{}, false};
  DirectoryReader reader;
  reader.start(directory_.get());
  while (const char* name = reader.next()) {
    if (listing.entries.size() >= kMostEntries) {
      listing.complete = false;
      break;
    }
    auto entry = ask_in(directory_.get(), name, own->identity.device);
    if (!entry) {
      if (entry.error().code != ErrorCode::gone) listing.complete = false;
      continue;
    }
    listing.entries.push_back(*std::move(entry));
  }
  listing.complete = listing.complete && reader.error() == 0;
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const ShmEntry& a, const ShmEntry& b) { return a.name < b.name; });
  return listing;
}

LeaseBreaksIgnored::LeaseBreaksIgnored() noexcept {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGIO, &ignore, &before_);
}

LeaseBreaksIgnored::~LeaseBreaksIgnored() { (void)sigaction(SIGIO, &before_, nullptr); }

namespace {

ShmResult ended(ShmStatus status, std::string detail = {}) { return {0, status, std::move(detail)}; }

ShmResult failed(std::string_view what, int number) {
  const Error error = system_error(what, number);
  if (error.code == ErrorCode::gone) return ended(ShmStatus::already_gone);
  return ended(number == EROFS || error.code == ErrorCode::denied ? ShmStatus::denied : ShmStatus::cannot_tell,
               error.message);
}

/// One file on its way out. The steps are taken in the order of their declaration; each may say why it stays.
class Removal {
 public:
  explicit Removal(const ShmFile& file)
      : directory_(file.directory->descriptor()), name_(file.name), expected_(file.expected), top_(file.directory) {}

  [[nodiscard]] std::optional<ShmResult> take_lease();
  [[nodiscard]] std::optional<ShmResult> set_aside();
  [[nodiscard]] std::optional<ShmResult> look_again();
  [[nodiscard]] ShmResult unlink();
  /// Its name back, if it has another by now.
  [[nodiscard]] ShmResult give_back(ShmResult why);

 private:
  [[nodiscard]] std::optional<ShmResult> go_down();
  [[nodiscard]] std::optional<ShmResult> still_expected(int fd) const;
  /// Nobody waits for the file to open: the lease is whole.
  [[nodiscard]] bool is_alone() const noexcept { return fcntl(file_.get(), F_GETLEASE) == F_WRLCK; }
  [[nodiscard]] bool names_expected(const std::string& name) const;

  int directory_;
  std::string name_, aside_;  ///< the second is empty while it has the first
  ShmIdentity expected_;
  const ShmDirectory* top_;
  std::optional<ShmDirectory> below_;
  UniqueFd file_;
};

/// Into the folder of a path of two parts.
std::optional<ShmResult> Removal::go_down() {
  const auto slash = name_.find('/');
  if (slash == std::string::npos) return std::nullopt;
  auto below = top_->open_below(name_.substr(0, slash));
  if (!below) return ended(ShmStatus::changed, below.error().message);
  name_ = name_.substr(slash + 1);
  if (name_.find('/') != std::string::npos) return ended(ShmStatus::cannot_tell, "too deep");
  below_ = *std::move(below);
  directory_ = below_->descriptor();
  return std::nullopt;
}

std::optional<ShmResult> Removal::still_expected(int fd) const {
  const auto now = ask_for_entry(fd, "", AT_EMPTY_PATH);
  if (!now) return failed("statx", errno);
  if ((now->mode & S_IFMT) != S_IFREG || now->identity.device != expected_.device ||
      now->identity.inode != expected_.inode)
    return ended(ShmStatus::changed, "another file has this name by now");
  if (now->identity.links != 1) return ended(ShmStatus::changed, "it was linked or unlinked meanwhile");
  if (now->identity.size != expected_.size || now->identity.modified != expected_.modified)
    return ended(ShmStatus::changed, "it was written or resized meanwhile");
  return std::nullopt;
}

std::optional<ShmResult> Removal::take_lease() {
  if (auto kept = go_down()) return kept;
  // First as a path only: whatever took the name is not opened, be it a FIFO or a device.
  const UniqueFd path(openat(directory_, name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!path) return failed(name_, errno);
  if (auto other = still_expected(path.get())) return other;
  const std::string by_descriptor = "/proc/self/fd/" + std::to_string(path.get());
  file_.reset(::open(by_descriptor.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file_ && errno == EWOULDBLOCK) return ended(ShmStatus::in_use, "somebody has a lease on it");
  if (!file_) return failed("cannot open it", errno);
  if (fcntl(file_.get(), F_SETLEASE, F_WRLCK) != 0) {
    if (errno == EAGAIN) return ended(ShmStatus::in_use, "somebody has it open or mapped");
    return failed("the kernel gives no lease on it, so that nobody can tell whether it is in use", errno);
  }
  // Whoever opened, wrote and closed it before the lease left a trace.
  return still_expected(file_.get());
}

bool Removal::names_expected(const std::string& name) const {
  const auto there = ask_for_entry(directory_, name.c_str(), AT_SYMLINK_NOFOLLOW);
  return there && there->identity.device == expected_.device && there->identity.inode == expected_.inode;
}

ShmResult Removal::give_back(ShmResult why) {
  if (aside_.empty()) return why;
  if (renameat2(directory_, aside_.c_str(), directory_, name_.c_str(), RENAME_NOREPLACE) != 0)
    why.detail += "; it is called " + aside_ + " now, for its name was taken again";
  aside_.clear();
  return why;
}

std::optional<ShmResult> Removal::set_aside() {
  if (!names_expected(name_)) return ended(ShmStatus::changed, "another file has this name by now");
  std::string aside = ".vacate-" + std::to_string(getpid()) + "-" + std::to_string(expected_.inode);
  if (renameat2(directory_, name_.c_str(), directory_, aside.c_str(), RENAME_NOREPLACE) != 0)
    return failed("cannot remove it", errno);
  // From here on nobody finds it by its name.
  aside_ = std::move(aside);
  return std::nullopt;
}

std::optional<ShmResult> Removal::look_again() {
  if (!names_expected(aside_)) return give_back(ended(ShmStatus::changed, "another file has this name by now"));
  if (!is_alone() || still_expected(file_.get()))
    return give_back(ended(ShmStatus::in_use, "somebody came to open it"));
  return std::nullopt;
}

ShmResult Removal::unlink() {
  if (unlinkat(directory_, aside_.c_str(), 0) != 0) return give_back(failed("cannot remove it", errno));
  return ended(ShmStatus::removed);
}

using Results = std::vector<std::optional<ShmResult>>;

/// What stays because number `culprit` does.
void keep_all(std::vector<Removal>& removals, Results& results, const std::string& name, std::size_t culprit) {
  for (std::size_t i = 0; i < removals.size(); ++i) {
    if (!results[i]) results[i] = ended(results[culprit]->status, "it belongs together with " + name + ", which stays");
    results[i] = removals[i].give_back(*std::move(results[i]));
  }
}

/// Takes each step with all of them; false: they stay.
bool prepare(const std::vector<ShmFile>& files, std::vector<Removal>& removals, Results& results) {
  for (const auto step : {&Removal::take_lease, &Removal::set_aside, &Removal::look_again}) {
    for (std::size_t i = 0; i < removals.size(); ++i) {
      if (results[i]) continue;
      results[i] = (removals[i].*step)();
      if (!results[i] || results[i]->status == ShmStatus::already_gone) continue;
      keep_all(removals, results, files[i].name, i);
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<ShmResult> unlink_unused_together(const std::vector<ShmFile>& files) {
  std::vector<Removal> removals;
  for (const auto& file : files) removals.emplace_back(file);
  Results results(files.size());
  const bool may_go = prepare(files, removals, results);
  std::vector<ShmResult> answers;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (may_go && !results[i]) results[i] = removals[i].unlink();
    answers.push_back(results[i].value_or(ShmResult{}));
  }
  return answers;
}

ShmResult unlink_unused(const ShmDirectory& directory, const std::string& name, const ShmIdentity& expected) {
  return unlink_unused_together({{&directory, name, expected}}).front();
}

}  // namespace vacate
