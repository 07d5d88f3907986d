// SPDX-License-Identifier: Apache-2.0
#include "verify/judge_release.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vacate {
namespace {

/// Did the figure fall by what those who were ended had been charged?
bool fell_enough(const ReleaseView& view, const Policy& policy) {
  if (!view.before.known() || !view.ended_charged.known() || view.ended_charged->count == 0) return false;
  return *view.before >= *view.used && *view.before - *view.used + policy.memory_tolerance >= *view.ended_charged;
}

/// Those who stay have clients of what was ended. An ended one that was charged nothing leaves nothing behind.
bool is_kept(const ReleaseView& view) {
  const bool had_memory = !view.ended_charged.known() || view.ended_charged->count > 0;
  return had_memory && !view.keepers.empty();
}

/// No fall for a while, and the last release is too long ago for more to be under way (design.md, Numbers).
bool is_at_rest(const ReleaseView& view, const Policy& policy) {
  const bool released_just_now = view.since_release.has_value() && *view.since_release < policy.recent_release;
  return view.since_fall >= policy.held_by_nobody_after && !released_just_now;
}

Bytes floor_of(const ReleaseView& view) { return view.baseline.value_or(Bytes{0}); }

Judgement settled(GpuVerdict verdict, Proof proof, std::string detail = {}) {
  return {verdict, proof, true, std::move(detail)};
}
Judgement not_yet(GpuVerdict verdict, std::string detail = {}) {
  return {verdict, Proof::pending, false, std::move(detail)};
}

Judgement judge_without_figure(const ReleaseView& view) {
  // Whoever holds a GPU that nobody was ended on is still there, figure or not.
  if (!view.touched && !view.holders.empty()) return settled(GpuVerdict::in_use, Proof::seen);
  return settled(GpuVerdict::cannot_tell, Proof::unreadable,
                 fmt::format("no memory figure to see the release by: {}", describe(view.used.reason())));
}

/// Holders remain, so the absolute figure proves nothing: what was ended has to be back beside what they have.
Judgement judge_in_use(const ReleaseView& view, const Policy& policy) {
  if (!view.touched) return settled(GpuVerdict::in_use, Proof::seen);
  if (view.ended_still_listed) return not_yet(GpuVerdict::in_use, "the driver still charges a process that has ended");
  if (fell_enough(view, policy)) return settled(GpuVerdict::in_use, Proof::seen);
  const bool explained =
      view.holders_charged.known() && *view.used <= floor_of(view) + *view.holders_charged + policy.memory_tolerance;
  // More than what the driver charges them may be on its way back: not all that was ended need have been shared.
  if (is_kept(view) && (explained || view.since_fall >= policy.held_by_nobody_after))
    return settled(
        GpuVerdict::in_use, Proof::kept,
        fmt::format("memory of what was ended stays: {} {} it, and {} not ended", fmt::join(view.keepers, ", "),
                    view.keepers.size() == 1 ? "shares" : "share", view.keepers.size() == 1 ? "is" : "are"));
  if (explained) return settled(GpuVerdict::in_use, Proof::seen);
  // Stable is not free (design.md, rule 6): what is left may be the others' or not have come back.
  if (is_at_rest(view, policy))
    return settled(
        GpuVerdict::in_use, Proof::unreadable,
        "the figure did not fall by what was ended; others hold this GPU, so where the rest is cannot be told");
  return not_yet(GpuVerdict::in_use, "memory of what was ended has not come back yet");
}

/// Nobody that can be seen holds it and the figure is above the floor, but something unseen could explain that.
Judgement judge_unseen(const ReleaseView& view, const Policy& policy) {
  static constexpr auto kDetail = "memory is in use that a process out of sight could hold";
  const bool may_still_come = view.touched && !fell_enough(view, policy) && view.since_release.has_value() &&
                              *view.since_release < policy.recent_release;
  if (may_still_come) return not_yet(GpuVerdict::releasing, "memory of what was ended has not come back yet");
  return settled(GpuVerdict::cannot_tell, Proof::unreadable, kDetail);
}

/// Nobody holds it, everything was visible, and the figure is above the floor: late, or held by no process at all.
Judgement judge_residue(const ReleaseView& view, const Policy& policy) {
  if (view.since_release.has_value() && *view.since_release < policy.recent_release)
    return not_yet(GpuVerdict::releasing,
                   fmt::format("the last holder ended less than {} s ago",
                               std::chrono::ceil<std::chrono::seconds>(policy.recent_release).count()));
  if (view.since_fall < policy.held_by_nobody_after) {
    if (view.has_fallen || view.touched)
      return not_yet(GpuVerdict::releasing, "the figure still fell within the last 10 s");
    return not_yet(GpuVerdict::cannot_tell,
                   "no holder; it takes 10 s without a fall to tell a late release from memory that nobody holds");
  }
  return settled(GpuVerdict::held_by_nobody, Proof::seen,
                 "no process holds it and the figure did not fall: reset the GPU or reboot");
}

/// Within a baseline that nobody measured, though the fall that would show the release was not seen: nobody knows how
/// much those who were ended had, and a part of it may have been taken for the baseline.
bool owes_more_than_seen(const ReleaseView& view, const Policy& policy) {
  return view.touched && view.baseline_is_assumed && !fell_enough(view, policy) && *view.used > policy.memory_tolerance;
}

Judgement judge_assumed(const ReleaseView& view, const Policy& policy) {
  const bool fell = view.before.known() && *view.before > *view.used + policy.memory_tolerance;
  if (fell ? view.since_fall < policy.held_by_nobody_after : !is_at_rest(view, policy))
    return not_yet(GpuVerdict::releasing, "no fall shows yet that the memory of what was ended came back");
  if (fell)
    return settled(GpuVerdict::released, Proof::seen,
                   "what is left is taken for the GPU's baseline: nobody measured it");
  return settled(GpuVerdict::cannot_tell, Proof::unreadable,
                 "the figure did not fall, and what is in use may be the GPU's baseline or memory of what was ended");
}

Judgement judge_unheld(const ReleaseView& view, const Policy& policy) {
  if (view.ended_still_listed)
    return not_yet(GpuVerdict::releasing, "the driver still charges a process that has ended");
  if (*view.used <= floor_of(view) + policy.memory_tolerance)
    return owes_more_than_seen(view, policy) ? judge_assumed(view, policy) : settled(GpuVerdict::released, Proof::seen);
  // Without a baseline (a partial view) the fall itself is the proof, as long as no more is left than an idle GPU may
  // use.
  if (!view.baseline.known() && fell_enough(view, policy) && *view.used <= policy.largest_assumed_baseline)
    return settled(GpuVerdict::released, Proof::seen, "no baseline is known: the figure fell by what was ended");
  return view.unseen_possible ? judge_unseen(view, policy) : judge_residue(view, policy);
}

}  // namespace

Judgement judge_release(const ReleaseView& view, const Policy& policy) {
  if (!view.used.known()) return judge_without_figure(view);
  return view.holders.empty() ? judge_unheld(view, policy) : judge_in_use(view, policy);
}

}  // namespace vacate
