// SPDX-License-Identifier: Apache-2.0
// Whoever ends processes takes turns with others who do: two at once would each send their TERM, and each would count
// what the other ended. The plan is made after the turn has come, on a fresh look.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "os/lock_file.h"

namespace vacate {

struct Turn {
  std::optional<LockFile> lock;  ///< for as long as somebody may be signalled
  std::string why_none;          ///< no safe place for one: a line for people, then another vacate would go unnoticed
};

/// Waits until no other command that ends processes is at work; root's and each user's own take turns. `command`: what
/// others are told of this one. `say` is told once whom it waits for. timed_out: who is still at work at `deadline`;
/// busy: `wake` (-1: none) became readable first.
[[nodiscard]] Result<Turn> take_turn(std::string_view command, Deadline deadline, int wake,
                                     const std::function<void(const std::string&)>& say);

}  // namespace vacate
