// SPDX-License-Identifier: Apache-2.0
// Who is never ended without being named, and who never at all (design.md, Protection; reports.md 5). A rule matches
// the path of the executable and, for daemons of the system, the user; never the name alone: a binary called Xorg in
// somebody's home is nobody's display.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/holder.h"
#include "model/snapshot.h"

namespace vacate {

/// The rule that protects the process, the strictest first. Rules (stable names): own-chain, pid1, kernel-thread,
/// display-server, compositor, nvidia-daemon, mps, device-plugin, container-runtime, scheduler, login, virtual-machine.
/// A user that could not be read counts as the one that the rule wants.
[[nodiscard]] std::optional<Protection> protection_of(const Process& process, const Snapshot& snapshot);

/// A client of the MPS control daemon (facts.md 1.8): ending it leaves the server and its other clients in an undefined
/// state.
[[nodiscard]] Protection mps_client_protection();

/// "it claims to be Xorg (display-server), but ...": for one that bears a protected program's name and is not it.
/// `process` must not be protected.
[[nodiscard]] std::optional<std::string> claim_of(const Process& process);

/// Is `name` that of a program which some rule protects, whoever bears it?
[[nodiscard]] bool has_protected_name(std::string_view name) noexcept;

}  // namespace vacate
