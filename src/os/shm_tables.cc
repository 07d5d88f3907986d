// SPDX-License-Identifier: Apache-2.0
#include "os/shm_tables.h"

#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"

namespace vacate {
namespace {

/// Words between blanks; at most `most`.
std::vector<std::string_view> words_of(std::string_view line, std::size_t most) {
  std::vector<std::string_view> words;
  while (words.size() < most) {
    const auto begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const auto end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// A number, signed or not, that the kernel prints of a pid_t; below 0 nobody.
std::optional<pid_t> parse_owner(std::string_view word) {
  const auto number = parse_signed(word);
  if (!number || *number > std::numeric_limits<pid_t>::max() || *number < std::numeric_limits<pid_t>::min())
    return std::nullopt;
  return static_cast<pid_t>(std::max<std::int64_t>(0, *number));
}

}  // namespace

std::optional<FileLock> parse_lock(std::string_view line) {
  // "1: FLOCK  ADVISORY  READ 4711 00:1a:3456 0 EOF"; "-> " before the kind: waits for it, and has it open as well.
  auto words = words_of(line, 8);
  if (words.size() > 1 && words[1] == "->") words.erase(words.begin() + 1);
  if (words.size() < 6 || !words[0].ends_with(':')) return std::nullopt;
  const auto pid = parse_owner(words[4]);
  const auto file = split(words[5], ':');
  if (!pid || file.size() != 3) return std::nullopt;
  const auto major_number = parse_hex(file[0]);
  const auto minor_number = parse_hex(file[1]);
  const auto inode = parse_unsigned(file[2]);
  if (!major_number || !minor_number || !inode || *major_number > 0xFFFU || *minor_number > 0xFFFFFU)
    return std::nullopt;
  return FileLock{*pid, makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number)), *inode};
}

LockTable parse_locks(std::string_view text) {
  LockTable table;
  for (const auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const auto words = words_of(line, 8);
    const auto lock = parse_lock(line);
    if (lock) table.locks.push_back(*lock);
    // A lock on nothing that has an inode, as the kernel prints one whose file is gone.
    if (!lock && std::find(words.begin(), words.end(), "<none>:0") == words.end()) table.complete = false;
  }
  return table;
}

std::optional<SysvSegment> parse_sysv_segment(std::string_view line) {
  static constexpr std::size_t kFields = 16;
  const auto words = words_of(line, kFields);
  if (words.size() < kFields - 2) return std::nullopt;
  SysvSegment segment;
  const auto id = parse_unsigned(words[1]);
  const auto creator = parse_owner(words[4]);
  const auto last = parse_owner(words[5]);
  std::array<std::uint64_t, 6> numbers{};
  static constexpr std::array<std::size_t, 6> kAt = {3, 6, 7, 11, 12, 13};  // size nattch uid atime dtime ctime
  for (std::size_t i = 0; i < kAt.size(); ++i) {
    const auto number = parse_unsigned(words[kAt[i]]);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  if (!id || *id > static_cast<std::uint64_t>(std::numeric_limits<int>::max()) || !creator || !last ||
      numbers[2] > std::numeric_limits<uid_t>::max())
    return std::nullopt;
  for (const char digit : words[2]) {
    if (digit < '0' || digit > '7' || words[2].size() > 8) return std::nullopt;
    segment.mode = segment.mode * 8 + static_cast<std::uint32_t>(digit - '0');
  }
  segment.id = static_cast<int>(*id);
  segment.creator = *creator;
  segment.last = *last;
  segment.size = numbers[0];
  segment.attached = numbers[1];
  segment.uid = static_cast<uid_t>(numbers[2]);
  segment.attached_at = static_cast<std::int64_t>(numbers[3]);
  segment.detached_at = static_cast<std::int64_t>(numbers[4]);
  segment.changed_at = static_cast<std::int64_t>(numbers[5]);
  if (words.size() > 14) segment.resident = parse_unsigned(words[14]).value_or(0);
  return segment;
}

std::vector<SysvSegment> parse_sysv_segments(std::string_view text) {
  std::vector<SysvSegment> segments;
  for (const auto line : split(text, '\n'))  // the heading is no segment, as its words are no numbers
    if (auto segment = parse_sysv_segment(line)) segments.push_back(*segment);
  std::sort(segments.begin(), segments.end(), [](const SysvSegment& a, const SysvSegment& b) { return a.id < b.id; });
  return segments;
}

ShmResult remove_sysv_unused(const ShmSegment& expected) {
  ShmResult result;
  shmid_ds now{};
  const auto fail = [&](ShmStatus status, std::string detail) {
    result.status = status;
    result.detail = std::move(detail);
    return result;
  };
  const int id = static_cast<int>(expected.identity.inode);
  if (shmctl(id, IPC_STAT, &now) != 0) {
    if (errno == EINVAL || errno == EIDRM) return fail(ShmStatus::already_gone, "");
    return fail(errno == EACCES ? ShmStatus::denied : ShmStatus::cannot_tell, system_error("shmctl").message);
  }
  const auto newest = static_cast<double>(std::max({now.shm_atime, now.shm_dtime, now.shm_ctime}));
  if (now.shm_segsz != expected.identity.size || now.shm_cpid != expected.creator || newest != expected.modified)
    return fail(ShmStatus::changed, "it is another segment by now, or was used meanwhile");
  if (now.shm_nattch != 0) return fail(ShmStatus::in_use, "somebody attached it");
  if (shmctl(id, IPC_RMID, nullptr) != 0)
    return fail(errno == EPERM ? ShmStatus::denied : ShmStatus::cannot_tell, system_error("shmctl").message);
  result.status = ShmStatus::removed;
  return result;
}

}  // namespace vacate
