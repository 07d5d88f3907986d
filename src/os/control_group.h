// SPDX-License-Identifier: Apache-2.0
// A control group (v2) of vacate's own, below the one that vacate is in: made where that can be written, removed when
// nobody is in it. What is in it can be frozen and ended as a whole (facts.md 3.5).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace vacate {

class ControlGroup {
 public:
  /// Makes the group `name` below the caller's own. unsupported: no v2 hierarchy, or the caller's place in it is out of
  /// sight; denied, io: it cannot be made.
  [[nodiscard]] static Result<ControlGroup> create_below_own(const std::string& name);

  /// Path in the hierarchy: "/user.slice/session-3.scope/NAME".
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Descriptors: of its directory, of the one above, of the file that joins whoever writes "0" to it. All
  /// close-on-exec.
  [[nodiscard]] int directory() const noexcept { return directory_.get(); }
  [[nodiscard]] int parent() const noexcept { return parent_.get(); }
  [[nodiscard]] int joining() const noexcept { return procs_.get(); }

  /// Everybody in it and below it, sorted; 0 for one of a pid namespace that is out of sight.
  [[nodiscard]] std::vector<pid_t> members() const;
  /// Freezes, and waits up to a fifth of a second until everybody is: nobody forks then. False: somebody is not.
  [[nodiscard]] bool freeze() const;
  void thaw() const noexcept;
  /// KILL to everybody in it and below it at once, forks included (5.14). False: this kernel cannot.
  [[nodiscard]] bool kill_everybody() const noexcept;
  /// Removes it and the groups that were made below it. False: somebody is in one of them.
  [[nodiscard]] bool remove() const noexcept;

 private:
  ControlGroup(std::string path, std::string name, UniqueFd parent, UniqueFd directory, UniqueFd procs) noexcept
      : path_(std::move(path)),
        name_(std::move(name)),
        parent_(std::move(parent)),
        directory_(std::move(directory)),
        procs_(std::move(procs)) {}
  std::string path_, name_;
  UniqueFd parent_, directory_, procs_;
};

/// "/a/b" of the line "0::/a/b" of /proc/self/cgroup; empty: no v2 group, or one outside of what is visible.
[[nodiscard]] std::string parse_own_cgroup2(std::string_view text);

}  // namespace vacate
