// SPDX-License-Identifier: Apache-2.0
// FUSE requests whose answer has to wait: for a time, for a signal to the caller, or for ever. Only keeps them; the
// server's loop asks when the next is due. A request that waits for ever is answered by the end of the connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>

#include "base/deadline.h"

struct fuse_req;

namespace lab {

enum class ReplyKind { status, ioctl };

class DelayedReplies {
 public:
  DelayedReplies() = default;
  DelayedReplies(DelayedReplies&&) = default;
  DelayedReplies& operator=(DelayedReplies&&) = default;

  /// Answers `request` with success in `delay_ms`; never where that is negative.
  void after(fuse_req* request, ReplyKind kind, std::int64_t delay_ms);
  /// The same, counted from the moment the caller gets a signal.
  void after_interrupt(fuse_req* request, ReplyKind kind, std::int64_t delay_ms);

  [[nodiscard]] vacate::Deadline next() const;
  void send_due();

 private:
  struct Waiting {
    fuse_req* request;
    ReplyKind kind;
    std::int64_t delay_ms;
    vacate::Deadline due;
  };
  static void interrupted(fuse_req* request, void* waiting);

  std::list<Waiting> waiting_;  // a list: libfuse is given the address of an element
};

}  // namespace lab
