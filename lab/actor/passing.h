// SPDX-License-Identifier: Apache-2.0
// Descriptors over Unix sockets, and the exchange by which one actor hands an exported control file to another.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/actor/board.h"
#include "lab/actor/plan.h"

namespace lab {

/// One byte with `fd` over the connected socket `socket`.
[[nodiscard]] vacate::Result<void> send_descriptor(int socket, int fd);

/// Asks the actor that hold `number` of `slot`'s orders names for its export, and waits for it. An error of the other
/// side comes as its text.
[[nodiscard]] vacate::Result<vacate::UniqueFd> ask_for_export(const Board& board, std::uint32_t slot,
                                                              std::uint32_t number, std::uint32_t exporter);

/// What makes the file that a hold of somebody else asks for.
using MakeExport = std::function<vacate::Result<vacate::UniqueFd>(const HoldPlan&)>;

/// Answers everybody who asks `slot` for an export, and keeps no descriptor of it.
void serve_exports(const Board& board, std::uint32_t slot, const MakeExport& make);

}  // namespace lab
