// SPDX-License-Identifier: Apache-2.0
// Sole owner of a pidfd: the only thing in vacate that can signal a process. It is made by opening, then reading, then
// proving that the process is still alive, so that what was read is about the process that the descriptor pins
// (facts.md 3.4). There is no way to signal a bare pid.
#pragma once

#include <sys/types.h>

#include <map>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/process.h"

namespace vacate {

/// The program that a process runs: exec gives it another file, or the same one with another stack.
struct ProgramImage {
  std::uint64_t device = 0, inode = 0;  ///< of the executable; 0 where it cannot be read
  std::uint64_t stack_start = 0;        ///< 0 where it cannot be read
};

class ProcessRef {
 public:
  /// Opens `pid`, reads its start time, proves it alive afterwards. gone: no such process, or it ended meanwhile;
  /// unsupported: a kernel before 5.3, there is no fallback.
  [[nodiscard]] static Result<ProcessRef> open(pid_t pid);

  ProcessRef(ProcessRef&&) noexcept = default;
  ProcessRef& operator=(ProcessRef&&) noexcept = default;

  [[nodiscard]] const ProcessKey& key() const noexcept { return key_; }
  /// For poll(2): readable when the whole process, every thread of it, has ended.
  [[nodiscard]] int descriptor() const noexcept { return pidfd_.get(); }
  /// Ended: right for zombie leaders with live threads too, where state Z is wrong. Does not block.
  [[nodiscard]] bool exited() const noexcept;
  /// Was alive after everything read of it so far: call after reading /proc. gone otherwise.
  [[nodiscard]] Result<void> prove_alive() const;
  /// It has called execve(2) since it was opened: what was found out about its program is about another one. False for
  /// one whose program is gone because it is on its way out, and where neither then nor now it could be read.
  [[nodiscard]] bool runs_another_program() const;
  /// Sends `signal` to exactly this process. gone: it has ended.
  [[nodiscard]] Result<void> send_signal(int signal) const;

 private:
  ProcessRef(UniqueFd pidfd, ProcessKey key) noexcept : pidfd_(std::move(pidfd)), key_(key) {}
  UniqueFd pidfd_;
  ProcessKey key_;
  ProgramImage image_;
};

/// One pidfd a candidate, opened before anything is decided on it. Move-only.
class PinSet {
 public:
  /// Opens and keeps `pid`; the same process twice is one entry.
  [[nodiscard]] Result<ProcessKey> pin(pid_t pid);
  /// The pinned process with this key; nullptr if it is not pinned or the pid is another process now.
  [[nodiscard]] const ProcessRef* find(const ProcessKey& key) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return pins_.size(); }

 private:
  std::map<pid_t, ProcessRef> pins_;
};

}  // namespace vacate
