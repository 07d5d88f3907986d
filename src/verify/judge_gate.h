// SPDX-License-Identifier: Apache-2.0
// May a service start on this GPU? Holders and memory decide together, utilisation never. Pure: one sighting, the
// request and what was seen before go in, the state of one GPU comes out.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "model/policy.h"
#include "model/wait.h"
#include "verify/sighting.h"

namespace vacate {

/// What the wait has seen of one GPU so far.
struct GateMemory {
  /// The smallest baseline that was assumed during the wait. While a release may be under way it counts in place of
  /// the present one, which would take memory that is still to fall for the GPU's own.
  std::optional<Bytes> floor;
  std::optional<std::chrono::milliseconds> since_release;  ///< since somebody in the way was last seen to go
  std::optional<std::chrono::milliseconds> since_fall;     ///< since the figure last fell
  std::chrono::milliseconds watched{0};                    ///< since the wait began
};

/// Does this holder count for `request` at all: selected and not ignored?
[[nodiscard]] bool counts(const Holder& holder, const Snapshot& snapshot, const WaitRequest& request);

/// The state of GPU `index`. Where no such GPU is seen: cannot_tell.
[[nodiscard]] GpuGate judge_gate(unsigned index, const Sighting& now, const WaitRequest& request,
                                 const GateMemory& memory, const Policy& policy);

/// The protection rule of those who are ignored.
inline constexpr std::string_view kIgnoredRule = "ignored";

/// Marks holders and relatives that are ignored as protected, so that a plan made of `attribution` spares them.
void spare_ignored(Attribution& attribution, const Snapshot& snapshot, const WaitRequest& request);

}  // namespace vacate
