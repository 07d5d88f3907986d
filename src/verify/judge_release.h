// SPDX-License-Identifier: Apache-2.0
// Did the memory of one GPU come back? Pure: what was seen goes in, a judgement comes out. Killed is not released,
// stable is not free, and `released` is said only of what was seen (design.md section 5, rule 6 and Numbers).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/reading.h"
#include "model/outcome.h"
#include "model/policy.h"

namespace vacate {

/// One GPU at one moment, beside what it was before anything was ended.
struct ReleaseView {
  Reading<Bytes> before;
  Reading<Bytes> used;
  Reading<Bytes> baseline;
  bool baseline_is_assumed = false;         ///< nobody measured it: memory of what was ended may be in it
  std::vector<pid_t> holders;               ///< that pin memory and are there now
  Reading<Bytes> holders_charged;           ///< what the driver charges them; unknown if any of them is unknown
  bool touched = false;                     ///< somebody who pinned it was ended, or ended while we watched
  Reading<Bytes> ended_charged;             ///< what the driver charged those, before
  bool ended_still_listed = false;          ///< the driver still charges one of them for what nobody left keeps
  std::vector<pid_t> keepers;               ///< of `holders`: those who shared a client with one of them; sorted
  bool unseen_possible = false;             ///< something that this scan cannot see could hold it
  bool has_fallen = false;                  ///< the figure fell since the watch began
  std::chrono::milliseconds since_fall{0};  ///< since the figure last fell, or since the watch began
  std::optional<std::chrono::milliseconds> since_release;  ///< since the last one that was ended went
};

/// What the release of what was ended rests on.
enum class Proof {
  seen,        ///< the memory is back, or there was none to come back
  pending,     ///< not yet
  kept,        ///< it cannot come back: others, who stay, share clients with what was ended
  unreadable,  ///< no figure to see it by
};

struct Judgement {
  GpuVerdict verdict = GpuVerdict::cannot_tell;
  Proof proof = Proof::pending;
  bool settled = false;  ///< looking again cannot change it; a proof still wants a second, agreeing sample
  std::string detail;    ///< for people, where the verdict rests on less than usual
  bool operator==(const Judgement&) const = default;
};

[[nodiscard]] Judgement judge_release(const ReleaseView& view, const Policy& policy);

}  // namespace vacate
