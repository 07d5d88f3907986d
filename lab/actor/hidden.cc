// SPDX-License-Identifier: Apache-2.0
// See hidden.h.
#include "lab/actor/hidden.h"

#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/deadline.h"
#include "lab/actor/futex.h"
#include "lab/actor/holdings.h"
#include "lab/actor/passing.h"

namespace lab {
namespace {

using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

/// What the new thread is to keep, until it has said that it does.
struct Order {
  std::vector<int> keep;  ///< ascending
  FutexWord done{0};
  int problem = 0;
};

/// Closes everything above 2 in the calling thread's table but `keep`.
bool close_others(const std::vector<int>& keep) {
  unsigned from = 3;
  for (const int fd : keep) {
    const auto kept = static_cast<unsigned>(fd);
    if (kept > from && close_range(from, kept - 1, 0) != 0) return false;
    from = std::max(from, kept + 1);
  }
  return close_range(from, ~0U, 0) == 0;
}

void* keep_table(void* argument) {
  auto& order = *static_cast<Order*>(argument);
  const bool kept = unshare(CLONE_FILES) == 0 && close_others(order.keep);
  order.problem = kept ? 0 : errno;
  futex_bump(order.done);  // the order is gone from here on
  for (;;) pause();
}

}  // namespace

Result<void> put_in_thread(const std::vector<NodeRef>& nodes) {
  Order order;
  for (const NodeRef& node : nodes) order.keep.push_back(node.fd.get());
  std::sort(order.keep.begin(), order.keep.end());
  pthread_t thread{};
  if (const int failure = pthread_create(&thread, nullptr, keep_table, &order); failure != 0) {
    return Error{ErrorCode::io, std::string("a thread for a table of its own: ") + std::strerror(failure)};
  }
  while (order.done.load() == 0) futex_wait(order.done, 0, Deadline::never());
  if (order.problem != 0) {
    errno = order.problem;
    return system_error("a descriptor table of a thread's own");
  }
  return {};
}

Result<std::vector<UniqueFd>> put_in_queue(const std::vector<NodeRef>& nodes) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return system_error("socket pair");
  std::vector<UniqueFd> ends;
  for (const int end : pair) ends.emplace_back(end);
  for (const NodeRef& node : nodes) {
    if (auto sent = send_descriptor(ends.front().get(), node.fd.get()); !sent) return sent.error();
  }
  return ends;
}

}  // namespace lab
