// SPDX-License-Identifier: Apache-2.0
// A file system that answers until it is told to fall silent, as a dead server does. For tests of what must not wait
// for it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace vacate {

/// Mounted at a folder, served by a child process. Files: `data` (1 MiB of zeros), `program` (a copy of a program), and
/// `hang`: what reads or closes it is told nothing, ever.
class SilentFuse {
 public:
  /// `program`: path of what `program` has to be.
  SilentFuse(const std::string& mount_point, const std::string& program);
  SilentFuse(const SilentFuse&) = delete;
  SilentFuse& operator=(const SilentFuse&) = delete;
  /// The server ends, and whoever waits for it gets an error.
  ~SilentFuse();

  /// Empty, or why it could not be mounted.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// From now on nothing is answered at all.
  void fall_silent();
  /// Until somebody's read of `hang` has reached the server. One that is still queued ends with its reader instead.
  void wait_for_reader() const;

 private:
  UniqueFd taken_, reached_;  ///< a pipe: a byte for each read of `hang` that the server has taken
  pid_t server_ = -1;
  std::string problem_;
};

}  // namespace vacate
