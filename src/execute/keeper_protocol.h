// SPDX-License-Identifier: Apache-2.0
// What vacate and its keeper say to each other, one datagram each. Both are the same program, so numbers are in the
// machine's own order; still nothing that is read is trusted to be whole.
#pragma once

#include <string>

#include "execute/keeper.h"

namespace vacate {

enum class KeeperOrder : unsigned char { pass_on, pass_on_unless_reached, resume, end, hurry };

inline constexpr std::size_t kLargestKeeperMessage = std::size_t{128} * 1024;

[[nodiscard]] std::string render_keeper_event(const KeeperEvent& event);
/// nothing: not the keeper's words.
[[nodiscard]] std::optional<KeeperEvent> parse_keeper_event(std::string_view bytes);

/// The keeper itself: never returns.
[[noreturn]] void be_keeper(const CommandToRun& command, const ControlGroup* group, pid_t vacate, int channel);

}  // namespace vacate
