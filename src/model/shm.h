// SPDX-License-Identifier: Apache-2.0
// Shared memory as one look saw it, what was concluded from it and what came of removing it. Plain values; every name
// is hostile bytes as its maker chose them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "model/exit_code.h"
#include "model/scan_use.h"
#include "model/snapshot.h"

namespace vacate {

enum class ShmKind {
  file,       ///< a regular file of a tmpfs
  other,      ///< a directory, link, socket, FIFO or device there: never removed
  sysv,       ///< a System V segment
  huge_page,  ///< a file of a hugetlbfs: listed only
};

enum class ShmUse { mapping, descriptor, thread_descriptor, lock, attachment };
[[nodiscard]] std::string_view describe(ShmUse how) noexcept;

/// `pid` 0: somebody who cannot be named (a lock of an open file description, an attachment).
struct ShmUser {
  pid_t pid = 0;
  ShmUse how = ShmUse::mapping;
  auto operator<=>(const ShmUser&) const = default;
};

/// What tells one file from a later one of the same name.
struct ShmIdentity {
  std::uint64_t device = 0;   ///< st_dev as makedev(3) packs it
  std::uint64_t inode = 0;    ///< of a System V segment: its id
  std::uint64_t size = 0;     ///< apparent, in bytes
  std::int64_t modified = 0;  ///< st_mtime in nanoseconds
  std::uint32_t links = 1;    ///< names that it has
  bool operator==(const ShmIdentity&) const = default;
};

struct ShmSegment {
  ShmKind kind = ShmKind::file;
  std::string name;       ///< below the directory; of a System V segment "sysv:ID"
  std::size_t place = 0;  ///< index into ShmSnapshot::places, for files
  ShmIdentity identity;
  std::string type;          ///< `other`: "a directory", "a symbolic link", ...
  bool locked_down = false;  ///< marked immutable or append-only: cannot be unlinked
  Bytes size;                ///< apparent
  Bytes on_disk;             ///< what it takes of the tmpfs
  Reading<uid_t> uid;
  std::string user;
  double modified =
      0;  ///< seconds since the epoch: last written or resized; System V: last attached or detached, or made
  pid_t creator = 0;           ///< System V only, 0: not visible
  pid_t last_user = 0;         ///< System V only: attached or detached last
  std::uint64_t attached = 0;  ///< System V only
  std::vector<ShmUser> users;  ///< sorted
  bool operator==(const ShmSegment&) const = default;
};

/// A directory of a tmpfs that was looked through, or a hugetlbfs.
struct ShmPlace {
  std::string path;
  std::uint64_t device = 0;
  bool read_only = false;
  bool huge_pages = false;
  Reading<Bytes> size, used;  ///< of the whole file system
  bool operator==(const ShmPlace&) const = default;
};

/// Space without a name that somebody still uses: no removal gives it back, only the end of its users.
struct DeletedShm {
  std::size_t place = 0;
  std::uint64_t inode = 0;
  std::string name;  ///< the last it had, as its users' mappings say; hostile bytes
  Reading<Bytes> on_disk;
  std::vector<ShmUser> users;  ///< sorted
  bool operator==(const DeletedShm&) const = default;
};

/// A process that may answer for segments that nobody has mapped right now.
struct ShmKeeper {
  pid_t pid = 0;                  ///< in the namespace of the scan
  pid_t own_pid = 0;              ///< its number in its own namespace
  bool resource_tracker = false;  ///< Python's: unlinks what its clients leave, once they have ended
  uid_t uid = 0;
  double started = 0;                  ///< seconds since the epoch
  std::vector<std::uint64_t> devices;  ///< of the places that it may see, wherever, sorted
  bool operator==(const ShmKeeper&) const = default;
};

struct ShmSnapshot {
  Host host;
  Caller caller;
  double time = 0;  ///< seconds since the epoch
  std::vector<ShmPlace> places;
  std::vector<ShmSegment> segments;  ///< files by place and name, then System V by id
  std::vector<DeletedShm> deleted;   ///< by place and inode
  std::vector<ShmKeeper> keepers;    ///< by pid; asked for only while some segment could go
  /// Device and path in it of whatever is mounted on its own somewhere (a bind mount); hostile bytes. With `keepers`.
  std::vector<std::pair<std::uint64_t, std::string>> mounted;
  std::vector<std::pair<pid_t, std::string>> titles;  ///< of the users, by pid; hostile bytes
  Visibility visibility;
  bool operator==(const ShmSnapshot&) const = default;
};

enum class ShmVerdict { unused, in_use, too_young, unknown_family, not_ours, cannot_tell };
[[nodiscard]] std::string_view describe(ShmVerdict verdict) noexcept;

/// What is concluded about the segment of the same index.
struct ShmFinding {
  std::string family;                ///< "python", ...; empty: unknown
  std::string software;              ///< for people
  std::vector<std::string> encodes;  ///< what its name says: "creator pid 4711"
  ShmVerdict verdict = ShmVerdict::cannot_tell;
  std::string because;
  std::string set;  ///< segments of one set go together or not at all; empty: it stands alone
  bool operator==(const ShmFinding&) const = default;
};

/// How careful, and what is meant.
struct ShmRequest {
  std::chrono::milliseconds older_than{600'000};
  std::vector<std::string> families;  ///< none: all
  std::vector<std::string> paths;     ///< directories beside /dev/shm
  bool sysv = false;                  ///< System V segments as well
  ScanMethod scan = ScanMethod::automatic;
  bool assume_private = false;  ///< in a container: the caller vouches that nobody outside uses this tmpfs
};

struct ShmStep {
  unsigned n = 0;           ///< 1..
  std::size_t segment = 0;  ///< index into ShmSnapshot::segments
  std::string name;
  Bytes on_disk;
  std::string because;
  std::string set;  ///< steps of one set are carried out together or not at all; empty: it stands alone
  bool operator==(const ShmStep&) const = default;
};

struct ShmPlan {
  std::string id;              ///< 16 hex digits; of the plan of `free` where it is part of one
  std::vector<ShmStep> steps;  ///< by place and name
  std::string refusal;         ///< not empty: nothing may be removed here, and why
  bool operator==(const ShmPlan&) const = default;
};

enum class ShmStatus {
  removed,
  already_gone,
  changed,  ///< the name means another file by now, or the file was written: kept
  in_use,   ///< somebody came to use it meanwhile: kept
  denied,
  cannot_tell,  ///< the kernel gave no proof that nobody has it open: kept
  skipped,      ///< a dry run, or interrupted
};
[[nodiscard]] std::string_view describe(ShmStatus status) noexcept;

struct ShmResult {
  unsigned n = 0;
  ShmStatus status = ShmStatus::skipped;
  std::string detail;
  bool operator==(const ShmResult&) const = default;
};

enum class ShmCommandVerdict { listed, removed, nothing_to_do, would_remove, remain, refused, cannot_tell };
[[nodiscard]] std::string_view describe(ShmCommandVerdict verdict) noexcept;
/// cli.md, "Exit codes".
[[nodiscard]] ExitCode exit_code_of(ShmCommandVerdict verdict) noexcept;

/// What `free` did about segments that those it ended had used.
struct ShmCleanup {
  struct Entry {
    std::string path;
    Bytes on_disk;
    std::string because;
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> removed, kept;
  bool operator==(const ShmCleanup&) const = default;
};

}  // namespace vacate
