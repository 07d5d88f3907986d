// SPDX-License-Identifier: Apache-2.0
// The kernel's two freezers of control groups: which group keeps a process frozen, who else is in it, and thawing it.
// Every path is walked part by part from the mount point of the hierarchy, following no link, and nothing but a file
// system of control groups is ever written to.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/plan.h"
#include "model/snapshot.h"

namespace vacate {

/// Where /proc/PID/cgroup says that a process is, in the hierarchy of each freezer.
struct FreezerPaths {
  std::optional<std::string> v1, v2;
  bool operator==(const FreezerPaths&) const = default;
};
[[nodiscard]] FreezerPaths parse_freezer_paths(std::string_view proc_cgroup);

/// Mount points of whole hierarchies; empty where there is none.
struct FreezerMounts {
  std::string v1, v2;
  bool operator==(const FreezerMounts&) const = default;
};
/// The last mount of each kind counts, as a look-up would.
[[nodiscard]] FreezerMounts parse_freezer_mounts(std::string_view mountinfo);

class Freezers {
 public:
  [[nodiscard]] static Freezers read();
  explicit Freezers(FreezerMounts mounts) : mounts_(std::move(mounts)) {}

  /// The topmost frozen group that a process at `paths` is in, version 1 before version 2, with its members. Nothing:
  /// it is in none that can be seen.
  [[nodiscard]] std::optional<FrozenGroup> frozen_group(const FreezerPaths& paths) const;

  /// Thaws `group` and every group below it that is frozen by itself, if `is_expected` says yes to each process in all
  /// of them, asked right before. refused: somebody else is in it, who is named; gone: there is no such group.
  [[nodiscard]] Result<void> thaw(const ThawTarget& group, const std::function<bool(pid_t)>& is_expected) const;

 private:
  [[nodiscard]] const std::string& mount_of(Freezer freezer) const noexcept {
    return freezer == Freezer::v1 ? mounts_.v1 : mounts_.v2;
  }
  FreezerMounts mounts_;
};

}  // namespace vacate
