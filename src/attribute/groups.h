// SPDX-License-Identifier: Apache-2.0
// Which processes stand or fall together (design.md, Standing): joined by one client, one process group, a parent with
// the child it created, a living session leader with the groups of its session whose own leader lives. Not by a cgroup,
// and not by any name.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "attribute/census.h"

namespace vacate {

class Groups {
 public:
  explicit Groups(const Census& census);

  [[nodiscard]] std::size_t count() const noexcept { return members_.size(); }
  /// Sorted pids. Groups are ordered by their lowest member; every living process is in exactly one, and so is every
  /// pid that has references and no process.
  [[nodiscard]] const std::vector<pid_t>& members(std::size_t group) const noexcept { return members_[group]; }
  /// The group a pid is in; nothing for a pid that nobody lives under.
  [[nodiscard]] std::optional<std::size_t> group_of(pid_t pid) const noexcept;
  /// Its highest ancestor without leaving the group; itself if its parent is not in the group.
  [[nodiscard]] pid_t topmost_of(pid_t pid) const noexcept;
  /// Members whose parent is not in the group: the ones that are judged. Sorted.
  [[nodiscard]] const std::vector<pid_t>& topmost(std::size_t group) const noexcept { return topmost_[group]; }

 private:
  void find_topmost(pid_t pid, std::size_t group);

  const Census* census_;
  std::vector<std::vector<pid_t>> members_;
  std::map<pid_t, std::size_t> group_of_;
  std::map<pid_t, pid_t> topmost_of_;  ///< found once: a long chain of processes would cost its square otherwise
  std::vector<std::vector<pid_t>> topmost_;
};

}  // namespace vacate
