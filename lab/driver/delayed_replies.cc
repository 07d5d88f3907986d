// SPDX-License-Identifier: Apache-2.0
// The bookkeeping behind delayed_replies.h.
#define FUSE_USE_VERSION 312
#include "lab/driver/delayed_replies.h"

#include <fuse_lowlevel.h>

namespace lab {

using vacate::Deadline;

namespace {

Deadline in(std::int64_t delay_ms) {
  return delay_ms < 0 ? Deadline::never() : Deadline::after(std::chrono::milliseconds(delay_ms));
}

}  // namespace

void DelayedReplies::after(fuse_req* request, ReplyKind kind, std::int64_t delay_ms) {
  waiting_.push_back({request, kind, delay_ms, in(delay_ms), 0});
}

void DelayedReplies::after_interrupt(fuse_req* request, std::uint64_t file, std::int64_t delay_ms) {
  waiting_.push_back({request, ReplyKind::ioctl, delay_ms, Deadline::never(), file});
  // Calls back at once where the signal has come already.
  fuse_req_interrupt_func(request, interrupted, &waiting_.back());
}

void DelayedReplies::before_interrupt(fuse_req* request, std::int64_t delay_ms) {
  after(request, ReplyKind::status, delay_ms);
  fuse_req_interrupt_func(request, hurried, &waiting_.back());
}

void DelayedReplies::hurried(fuse_req* /*request*/, void* waiting) { static_cast<Waiting*>(waiting)->due = in(0); }

void DelayedReplies::answer(std::uint64_t file) {
  for (Waiting& reply : waiting_) {
    if (reply.file == file) reply.due = in(0);
  }
}

void DelayedReplies::interrupted(fuse_req* /*request*/, void* waiting) {
  auto& reply = *static_cast<Waiting*>(waiting);
  // Later signals do not put it off, and libfuse holds its locks here: the answer is the loop's to send.
  if (reply.due.when() == Deadline::never().when()) reply.due = in(reply.delay_ms);
}

Deadline DelayedReplies::next() const {
  Deadline first = Deadline::never();
  for (const Waiting& reply : waiting_) first = Deadline::earlier(first, reply.due);
  return first;
}

void DelayedReplies::send_due() {
  for (auto reply = waiting_.begin(); reply != waiting_.end();) {
    if (!reply->due.passed()) {
      ++reply;
      continue;
    }
    // A failure means that nobody waits for the answer any more.
    if (reply->kind == ReplyKind::ioctl) {
      static_cast<void>(fuse_reply_ioctl(reply->request, 0, nullptr, 0));
    } else {
      static_cast<void>(fuse_reply_err(reply->request, 0));
    }
    reply = waiting_.erase(reply);
  }
}

}  // namespace lab
