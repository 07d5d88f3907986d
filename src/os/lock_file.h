// SPDX-License-Identifier: Apache-2.0
// Locks between several vacates: advisory and exclusive, on files that nobody else can have made or can hold. What the
// file says of its holder is a label; the lock itself is the kernel's (flock(2)) and ends with the last copy of the
// descriptor, however its holder ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

/// How a wait for a lock ended.
enum class LockWait {
  taken,
  timed_out,  ///< the deadline passed first
  woken,      ///< the caller's descriptor became readable first
};

/// Who took the lock last, as they wrote it themselves.
struct LockOwner {
  pid_t pid = 0;        ///< in their pid namespace
  std::string command;  ///< printable, 64 bytes at most
  bool operator==(const LockOwner&) const = default;
};

class LockFile {
 public:
  /// Opens the file `name` ("free.lock", "gpu-UUID.lock": letters, digits, '-', '_', '.', ending in ".lock") and makes
  /// it where it is missing: root's in /run/vacate, anybody else's in /run/user/UID/vacate. Nothing is locked yet.
  /// unsupported: there is no folder that only root or the caller could have made; refused: what bears a name is not
  /// theirs, a link or no file; denied, io: it could not be made. Messages name the path. malformed: no such name.
  [[nodiscard]] static Result<LockFile> open(std::string_view name);

  /// Takes the lock if nobody has it and writes the caller's pid and `command` into the file. busy: somebody has it.
  [[nodiscard]] Result<void> try_lock(std::string_view command);
  /// The same, waiting for it until `deadline` or until `wake` (-1: none) is readable. Order among several is up to the
  /// kernel. Errors: as open(), for the file is made anew where somebody removed it meanwhile.
  [[nodiscard]] Result<LockWait> lock(std::string_view command, Deadline deadline, int wake);

  /// Who took it last; they have it only if the caller does not get it. Nothing: it does not say.
  [[nodiscard]] std::optional<LockOwner> owner() const;
  [[nodiscard]] bool held() const noexcept { return held_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Carries the lock: closed on exec, but a child that is given a copy keeps the lock held until it ends too.
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

 private:
  LockFile(std::string name, std::string path, UniqueFd folder, UniqueFd file) noexcept
      : name_(std::move(name)), path_(std::move(path)), folder_(std::move(folder)), file_(std::move(file)) {}
  [[nodiscard]] bool is_current() const noexcept;
  [[nodiscard]] Result<void> reopen();
  [[nodiscard]] Result<LockWait> wait_in_child(Deadline deadline, int wake) const;
  void sign(std::string_view command) noexcept;

  std::string name_;
  std::string path_;
  UniqueFd folder_;
  UniqueFd file_;
  bool held_ = false;
};

}  // namespace vacate
