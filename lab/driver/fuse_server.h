// SPDX-License-Identifier: Apache-2.0
// Carries requests between the kernel's FUSE connection and a DriverCore, in one thread that never waits for anything
// but the next request. One thread is what makes the driver faithful: a RELEASE is queued before its process is seen
// dead, and handled before any question that was asked after that (facts.md 2.3).
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "lab/driver/delayed_replies.h"
#include "lab/driver/driver_core.h"

struct fuse_session;

namespace lab {

class FuseServer {
 public:
  /// `owner` is shown as the owner of every node.
  FuseServer(DriverCore core, uid_t owner, gid_t group) : core_(std::move(core)), owner_(owner), group_(group) {}

  /// Serves `connection`, a /dev/fuse descriptor that is mounted, until it is aborted or unmounted. False if it could
  /// not begin; libfuse has then said why on standard error.
  bool run(vacate::UniqueFd connection);

  // For the FUSE operations.
  [[nodiscard]] DriverCore& core() noexcept { return core_; }
  [[nodiscard]] DelayedReplies& delayed() noexcept { return delayed_; }
  [[nodiscard]] uid_t owner() const noexcept { return owner_; }
  [[nodiscard]] gid_t group() const noexcept { return group_; }

 private:
  void serve(fuse_session* session, int fd);

  DriverCore core_;
  DelayedReplies delayed_;
  uid_t owner_;
  gid_t group_;
};

}  // namespace lab
