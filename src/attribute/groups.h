// SPDX-License-Identifier: Apache-2.0
// Which processes stand or fall together (design.md, Standing): joined by one client, one process group, a parent with
// the child it created, a living session leader with the groups of its session whose own leader lives. Not by a cgroup,
// and not by any name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attribute/census.h"

namespace vacate {

class Groups {
 public:
  explicit Groups(const Census& census);

  [[nodiscard]] std::size_t count() const noexcept { return members_.count(); }
  /// Sorted pids. Groups are ordered by their lowest member; every living process is in exactly one, and so is every
  /// pid that has references and no process.
  [[nodiscard]] std::span<const pid_t> members(std::size_t group) const noexcept { return members_.of(group); }
  /// The group a pid is in; nothing for a pid that nobody lives under.
  [[nodiscard]] std::optional<std::size_t> group_of(pid_t pid) const noexcept;
  /// Its highest ancestor without leaving the group; itself if its parent is not in the group.
  [[nodiscard]] pid_t topmost_of(pid_t pid) const noexcept;
  /// Members whose parent is not in the group: the ones that are judged. Sorted.
  [[nodiscard]] std::span<const pid_t> topmost(std::size_t group) const noexcept { return topmost_.of(group); }

 private:
  /// Pids of each group in one row: most groups of a machine are a single process, and there are thousands.
  class Rows {
   public:
    [[nodiscard]] std::size_t count() const noexcept { return starts_.size() - 1; }
    [[nodiscard]] std::span<const pid_t> of(std::size_t group) const noexcept {
      return {pids_.data() + starts_[group], pids_.data() + starts_[group + 1]};
    }
    void add_row(const std::vector<pid_t>& pids) {
      pids_.insert(pids_.end(), pids.begin(), pids.end());
      starts_.push_back(static_cast<std::uint32_t>(pids_.size()));
    }

   private:
    std::vector<pid_t> pids_;
    std::vector<std::uint32_t> starts_ = {0};
  };
  struct Member {
    pid_t pid = 0;
    std::uint32_t group = 0;
    pid_t topmost = 0;  ///< 0: not looked for yet
  };
  void collect_members();
  void find_topmost(pid_t pid, std::size_t group);
  [[nodiscard]] const Member* find(pid_t pid) const noexcept;
  [[nodiscard]] Member& at(pid_t pid) noexcept { return known_[static_cast<std::size_t>(find(pid) - known_.data())]; }

  const Census* census_;
  std::vector<Member> known_;  ///< by pid
  Rows members_, topmost_;
};

}  // namespace vacate
