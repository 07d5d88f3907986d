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
  /// Answers `request` with success and no data in `delay_ms` (negative: never), or when the caller gets a signal.
  void before_interrupt(fuse_req* request, std::int64_t delay_ms);
  /// Answers an ioctl on the open file `file` with success `delay_ms` after the caller got a signal.
  void after_interrupt(fuse_req* request, std::uint64_t file, std::int64_t delay_ms);
  /// Answers the ioctls that wait on `file` for a signal.
  void answer(std::uint64_t file);

  [[nodiscard]] vacate::Deadline next() const;
  void send_due();

 private:
  struct Waiting {
    fuse_req* request;
    ReplyKind kind;
    std::int64_t delay_ms;
    vacate::Deadline due;
    std::uint64_t file = 0;  ///< 0: nothing but time or the end of the connection answers it
  };
  static void interrupted(fuse_req* request, void* waiting);
  static void hurried(fuse_req* request, void* waiting);

  std::list<Waiting> waiting_;  // a list: libfuse is given the address of an element
};

}  // namespace lab
