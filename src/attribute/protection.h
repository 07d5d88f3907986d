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
/// display-server, compositor, browser, nvidia-daemon, monitor, mps, device-plugin, container-runtime, scheduler,
/// login, virtual-machine. A user that could not be read counts as the one that the rule wants, and where the
/// executable could not be read a name is enough.
[[nodiscard]] std::optional<Protection> protection_of(const Process& process, const Snapshot& snapshot);

/// What a role can add.
struct RoleFacts {
  HolderRole role = HolderRole::files;
  Standing standing = Standing::unsure;
  bool serves = false;    ///< it or a member of its group listens
  bool computes = false;  ///< it has a GPU and nvidia-uvm open, as only computing processes do
};

/// Rules that go by the role: importer (it serves others), query, suspended (a checkpointed process keeps its files and
/// has no context, facts.md 2.6; one that was restored looks like any other).
[[nodiscard]] std::optional<Protection> protection_by_role(const Process& process, const RoleFacts& facts);

/// nvidia-smi, nvtop and the like: it will be gone in a moment.
[[nodiscard]] bool is_query(const Process& process) noexcept;

/// A client of the MPS control daemon (facts.md 1.8): ending it leaves the server and its other clients in an undefined
/// state.
[[nodiscard]] Protection mps_client_protection();

/// "it claims to be Xorg (display-server), but ...": for one that bears a protected program's name and is not it.
/// `process` must not be protected.
[[nodiscard]] std::optional<std::string> claim_of(const Process& process);

/// Is `name` that of a program which some rule protects, whoever bears it?
[[nodiscard]] bool has_protected_name(std::string_view name) noexcept;

}  // namespace vacate
