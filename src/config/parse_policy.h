// SPDX-License-Identifier: Apache-2.0
// Policy files: TOML to Policy (docs/policy.md). Strict, for a rule that is misread protects nobody: an unknown key, a
// wrong type, a rule that fits everybody or a value out of range refuses the whole file. Pure: who may write the file,
// os/trusted_file.h says.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "model/policy.h"

namespace vacate {

/// The number of a user's name; nothing if nobody has it.
using FindUser = std::function<std::optional<uid_t>(std::string_view)>;

struct PolicyFile {
  std::string_view path;  ///< for messages and as the source of rules
  std::string_view text;
};

/// `policy` with what the file adds: rules after those that are there, baselines before them, figures in their place.
/// malformed: "PATH:LINE: what is wrong with what, and what is right", of the first mistake in the file.
[[nodiscard]] Result<Policy> add_policy(Policy policy, const PolicyFile& file, const FindUser& find_user);

}  // namespace vacate
