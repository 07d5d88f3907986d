// SPDX-License-Identifier: Apache-2.0
// Parents and children inside the groups of an attribution, and who is below whom on the whole machine. What planning
// asks of the process tree, and nothing about who may end.
#pragma once

#include <map>
#include <vector>

#include "model/holder.h"
#include "model/snapshot.h"

namespace vacate {

/// A member of a group: exactly one of the two is set.
struct Member {
  const Holder* holder = nullptr;
  const Relative* relative = nullptr;

  [[nodiscard]] const ProcessKey& key() const noexcept { return holder != nullptr ? holder->key : relative->key; }
  [[nodiscard]] Standing standing() const noexcept { return holder != nullptr ? holder->standing : relative->standing; }
  [[nodiscard]] const std::optional<Protection>& protection() const noexcept {
    return holder != nullptr ? holder->protection : relative->protection;
  }
  /// nullptr: nobody is known, or it holds nothing.
  [[nodiscard]] const Supervisor* supervisor() const noexcept {
    return holder != nullptr && holder->supervisor ? &*holder->supervisor : nullptr;
  }
  [[nodiscard]] const EndingTerms& terms() const noexcept {
    return holder != nullptr ? holder->terms : relative->terms;
  }
  [[nodiscard]] bool is_tracker() const noexcept { return relative != nullptr && relative->resource_tracker; }
};

class Kinship {
 public:
  /// Both must outlive it.
  Kinship(const Snapshot& snapshot, const Attribution& attribution);

  /// Every member of every group, by pid.
  [[nodiscard]] const std::map<pid_t, Member>& members() const noexcept { return members_; }
  [[nodiscard]] const Member* member(pid_t pid) const noexcept;
  /// Group::id, 0 for a process in none.
  [[nodiscard]] std::size_t group_of(pid_t pid) const noexcept;
  /// Parents inside the group, nearest first.
  [[nodiscard]] std::vector<pid_t> ancestors_in_group(pid_t pid) const;
  [[nodiscard]] std::size_t depth_in_group(pid_t pid) const { return ancestors_in_group(pid).size(); }
  [[nodiscard]] std::vector<pid_t> children_in_group(pid_t pid) const;
  /// Living processes below it, inside the group and out of it; sorted.
  [[nodiscard]] std::vector<pid_t> descendants(pid_t pid) const;
  [[nodiscard]] bool is_below(pid_t pid, pid_t ancestor) const;
  /// Living children, sorted.
  [[nodiscard]] const std::vector<pid_t>& children(pid_t pid) const noexcept;

 private:
  const Snapshot* snapshot_;
  std::map<pid_t, Member> members_;
  std::map<pid_t, std::size_t> group_of_;
  std::map<pid_t, std::vector<pid_t>> children_;
};

}  // namespace vacate
