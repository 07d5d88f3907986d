// SPDX-License-Identifier: Apache-2.0
// The policy of this run: the built-in figures, /etc/vacate/policy.toml where there is one, and the file of --policy.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/policy.h"

namespace vacate {

/// malformed, in one line for people: a file that cannot be read or trusted, or says what makes no sense. Nothing is
/// done then: a run without the protection that somebody wrote down would be worse than none. `file` has to exist,
/// the machine's own file need not.
[[nodiscard]] Result<Policy> load_policy(const std::optional<std::string>& file);

/// The file alone, for what was recorded on another machine.
[[nodiscard]] Result<Policy> load_named_policy(const std::optional<std::string>& file);

}  // namespace vacate
