// SPDX-License-Identifier: Apache-2.0
// What policy files add to the built-in protection, and how they want a process ended. A rule can only make vacate do
// less: what could not be read of a process counts as what the rule asks for. Pure.
#pragma once

#include <optional>

#include "model/holder.h"
#include "model/policy.h"

namespace vacate {

/// `built_in`, unless a rule goes further: `forbid` beats all but what is absolute anyway, `protect` counts where
/// nothing else protects. `role`: of a holder; nothing for a relative, whom no rule with a role fits.
[[nodiscard]] std::optional<Protection> with_policy(std::optional<Protection> built_in, const Process& process,
                                                    std::optional<HolderRole> role, const Policy& policy);

/// What the rules that fit say of its end, the stricter figure of several.
[[nodiscard]] EndingTerms ending_terms(const Process& process, std::optional<HolderRole> role, const Policy& policy);

}  // namespace vacate
