// SPDX-License-Identifier: Apache-2.0
// The machine's part of a cgroup tree of the host, that of version 2 or the freezer of version 1: a directory made
// before the machine and removed after it. Nothing but that directory is ever touched.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace lab {

enum class CgroupTree { v2, v1_freezer };

class MachineCgroup {
 public:
  /// Below the caller's own cgroup. unsupported: there is no such tree, or no right to make a directory there; says
  /// which.
  [[nodiscard]] static vacate::Result<MachineCgroup> create(CgroupTree tree);

  MachineCgroup(MachineCgroup&& other) noexcept;
  MachineCgroup& operator=(MachineCgroup&&) = delete;
  MachineCgroup(const MachineCgroup&) = delete;
  MachineCgroup& operator=(const MachineCgroup&) = delete;
  /// Waits up to 2 s for its last process to have gone, and removes it with all below.
  ~MachineCgroup();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  explicit MachineCgroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Starts a process that thaws `path`, a group of the freezer of version 1, and all below it as soon as the last copy
/// of the descriptor that it gives back is closed: by the end of who has it, whatever that was. What that freezer holds
/// takes not even KILL, so a machine with somebody in it would never end.
[[nodiscard]] vacate::Result<vacate::UniqueFd> start_thawer(const std::string& path);

}  // namespace lab
