// SPDX-License-Identifier: Apache-2.0
#include "app/turn.h"

#include <fmt/format.h>

namespace vacate {
namespace {

constexpr std::string_view kName = "free.lock";

std::string name_of(const std::optional<LockOwner>& owner) {
  if (!owner) return "another vacate";
  return fmt::format("process {} (vacate {})", owner->pid, owner->command);
}

Turn without(const Error& error) {
  return {std::nullopt, fmt::format("{}: another vacate at work would not be noticed", error.message)};
}

}  // namespace

Result<Turn> take_turn(std::string_view command, Deadline deadline, int wake,
                       const std::function<void(const std::string&)>& say) {
  auto lock = LockFile::open(kName);
  if (!lock) return without(lock.error());
  auto tried = lock->try_lock(command);
  if (!tried && tried.error().code == ErrorCode::busy) {
    say(fmt::format("waiting for {}, which is ending processes", name_of(lock->owner())));
    const auto waited = lock->lock(command, deadline, wake);
    if (!waited) return without(waited.error());
    if (*waited == LockWait::woken) return Error{ErrorCode::busy, "interrupted while waiting for its turn"};
    if (*waited == LockWait::timed_out)
      return Error{ErrorCode::timed_out,
                   fmt::format("nothing was done: {} was still at work when the time limit passed; "
                               "try again, or give a longer --timeout",
                               name_of(lock->owner()))};
  } else if (!tried) {
    return without(tried.error());
  }
  return Turn{std::move(*lock), {}};
}

}  // namespace vacate
