// SPDX-License-Identifier: Apache-2.0
// The built-in list of whom nobody ends without naming him (design.md, Protection; reports.md 5), as tables that a
// review can read. What makes an entry count, protection.cc says.
#pragma once

#include <optional>
#include <string_view>

#include "model/process.h"

namespace vacate {

// Whose process it has to be. `system`: root, an account that the distribution made for a daemon (nvidia-persistenced
// has one), or nobody, as which containers run theirs.
enum class Account { anybody, system, root };
enum class NameMatch { whole, prefix };

struct ProtectedProgram {
  std::string_view rule;
  std::string_view name;  ///< last part of the executable's path, which must lie in a tree of the system
  Account account = Account::anybody;
  NameMatch match = NameMatch::whole;
};

/// The entry for a program of this name, whoever bears it; nullptr if there is none.
[[nodiscard]] const ProtectedProgram* protected_name(std::string_view name) noexcept;
/// The same for `comm`, which the kernel cuts to 15 bytes.
[[nodiscard]] const ProtectedProgram* protected_comm(std::string_view comm) noexcept;

/// Is it a process of the account that the entry wants? A user that could not be read is taken for it.
[[nodiscard]] bool has_account(Account account, const Process& process) noexcept;

/// The rule for whatever daemon runs in this control group, by the system's own unit; nothing for other groups, and
/// for a unit of the same name that a user started.
[[nodiscard]] std::optional<std::string_view> rule_of_cgroup(std::string_view cgroup) noexcept;

/// Queries that end by themselves in a moment or when their window is closed; they have no context.
[[nodiscard]] bool is_query_name(std::string_view name) noexcept;

/// Why, and what is right instead; empty for a rule that is not built in.
[[nodiscard]] std::string_view text_of_rule(std::string_view rule) noexcept;

}  // namespace vacate
