// SPDX-License-Identifier: Apache-2.0
#include "verify/watch_release.h"

#include <algorithm>

#include "execute/wait.h"

namespace vacate {
namespace {

using Clock = Deadline::Clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestSampleDistance{
    50};  // of the 100 ms from the last release to the verdict half is left for the rest
constexpr milliseconds kLookAgain{1000};  // holders that no driver list shows, and processes started meanwhile
constexpr Bytes kStir = mebibytes(1);     // smaller moves of the figure are no fall

milliseconds elapsed(Clock::time_point since) { return std::chrono::duration_cast<milliseconds>(Clock::now() - since); }

/// What is remembered of one GPU from sample to sample.
struct Track {
  unsigned index = 0;
  EndedShare ended;
  Reading<Bytes> last_used;
  Clock::time_point fell;  ///< or the start of the watch
  bool has_fallen = false;
  std::vector<pid_t> last_holders;
  std::optional<Clock::time_point> released;  ///< when a reference to it was last seen to go
  std::optional<Clock::time_point> agreed_since;
  Judgement judgement;
  ReleaseView view;
  bool done = false;
  std::optional<Clock::time_point> decided;
};

class Watch {
 public:
  Watch(const WatchRequest& request, Sighting first, const WatchTools& tools, const Policy& policy);

  [[nodiscard]] Watched run(Deadline deadline);

 private:
  void take_figures(Deadline deadline);
  void look_again();
  void judge_anew();
  void judge_all();
  void judge(Track& track);
  void follow_figure(Track& track);
  void follow_holders(Track& track);
  [[nodiscard]] bool all_done() const;
  [[nodiscard]] bool list_changed() const;
  [[nodiscard]] bool is_last_look_old() const { return elapsed(looked_) >= kLookAgain; }
  [[nodiscard]] bool reopened_for_residue();
  [[nodiscard]] std::optional<Watched::End> finish_or_go_on(Deadline deadline);
  void show() const;
  [[nodiscard]] Watched result(Watched::End end);

  const WatchRequest& request_;
  const WatchTools& tools_;
  const Policy& policy_;
  Sighting now_;
  DriverFigures figures_;
  std::vector<Track> tracks_;
  Clock::time_point looked_ = Clock::now();
  Clock::time_point sampled_ = looked_;
  bool reopened_ = false;
  bool looked_twice_ = false;
};

Watch::Watch(const WatchRequest& request, Sighting first, const WatchTools& tools, const Policy& policy)
    : request_(request),
      tools_(tools),
      policy_(policy),
      now_(std::move(first)),
      figures_{now_.snapshot.gpus, now_.snapshot.charges} {
  for (const auto index : request.gpus) {
    Track& track = tracks_.emplace_back();
    track.index = index;
    track.fell = Clock::now();
    track.ended = ended_share(request.before, request.plan, request.results, index);
    if (track.ended.referenced) track.released = request.released;
    track.last_holders = pinning_holders(now_.attribution, index);
  }
  judge_all();
}

void Watch::follow_figure(Track& track) {
  const auto& used = track.view.used;
  if (used.known() && track.last_used.known() && *used + kStir <= *track.last_used) {
    track.fell = Clock::now();
    track.has_fallen = true;
  }
  track.last_used = used;
}

/// A holder that went by itself released a reference too.
void Watch::follow_holders(Track& track) {
  const auto& holders = track.view.holders;
  if (!std::includes(holders.begin(), holders.end(), track.last_holders.begin(), track.last_holders.end()))
    track.released = Clock::now();
  track.last_holders = holders;
}

/// Two agreeing samples: the same conclusion twice, far enough apart. Where nothing can be seen a second look adds
/// nothing.
void Watch::judge(Track& track) {
  track.view = view_of(track.index, request_.before, track.ended, now_, figures_);
  follow_figure(track);
  follow_holders(track);
  track.view.has_fallen = track.has_fallen;
  track.view.since_fall = elapsed(track.fell);
  if (track.released) track.view.since_release = elapsed(*track.released);
  const Judgement judgement = judge_release(track.view, policy_);
  const bool same = judgement.verdict == track.judgement.verdict && judgement.settled == track.judgement.settled;
  if (!judgement.settled || !same) track.agreed_since.reset();
  if (judgement.settled && !track.agreed_since) track.agreed_since = sampled_;
  track.judgement = judgement;
  if (!judgement.settled) track.decided.reset();
  if (!judgement.settled) return;
  track.done = judgement.proof == Proof::unreadable || sampled_ - *track.agreed_since >= policy_.sample_distance;
  if (track.done && !track.decided) track.decided = Clock::now();
}

void Watch::judge_all() {
  for (auto& track : tracks_)
    if (!track.done) judge(track);
  show();
}

/// Past the command's own deadline the driver gets one more second, for the last answer.
void Watch::take_figures(Deadline deadline) {
  const auto latest = std::max(deadline.when(), Clock::now() + std::chrono::seconds(1));
  DriverSample sample =
      tools_.sample(Deadline::earlier(Deadline::after(policy_.driver_deadline), Deadline::at(latest)));
  sampled_ = Clock::now();
  figures_ = {std::move(sample.gpus), std::move(sample.charges)};
}

void Watch::look_again() {
  now_ = tools_.look();
  looked_ = sampled_ = Clock::now();
  figures_ = {now_.snapshot.gpus, now_.snapshot.charges};
}

bool Watch::all_done() const {
  return std::all_of(tracks_.begin(), tracks_.end(), [](const Track& track) { return track.done; });
}

/// Somebody is in the driver's list, or out of it, who was not at the last look: the holders have changed.
bool Watch::list_changed() const {
  const auto names = [](const std::vector<DriverCharge>& charges) {
    std::vector<std::pair<unsigned, pid_t>> pairs;
    for (const auto& charge : charges) pairs.emplace_back(charge.gpu, charge.pid);
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  };
  return names(figures_.charges) != names(now_.snapshot.charges);
}

/// Before memory is said to be held by nobody it is read once more without our own driver child, where persistence is
/// not known to be on: an unused GPU is shut down then, and everything on it with it (facts.md 2.4).
bool Watch::reopened_for_residue() {
  if (reopened_ || !tools_.reopen_driver) return false;
  bool any = false;
  for (auto& track : tracks_) {
    const auto gpu = std::find_if(figures_.gpus.begin(), figures_.gpus.end(),
                                  [&](const Gpu& each) { return each.index == track.index; });
    const bool may_be_off = gpu == figures_.gpus.end() || !gpu->persistence.known() || !*gpu->persistence;
    if (track.judgement.verdict != GpuVerdict::held_by_nobody || !may_be_off) continue;
    track.done = false;
    track.agreed_since.reset();
    any = true;
  }
  if (!any) return false;
  reopened_ = true;
  tools_.reopen_driver();
  return true;
}

/// A GPU that was done may have got a new holder since.
void Watch::judge_anew() {
  for (auto& track : tracks_) track.done = false;
  judge_all();
}

/// What to do after a sample. The verdict is given on a fresh look at the processes, and a second one where a
/// supervisor had no time yet to start somebody anew.
std::optional<Watched::End> Watch::finish_or_go_on(Deadline deadline) {
  static constexpr milliseconds kFresh{250};
  const bool wants_look = all_done() && (elapsed(looked_) > kFresh || (request_.second_look && !looked_twice_));
  if (list_changed() || is_last_look_old() || wants_look) {
    look_again();
    looked_twice_ = true;
    if (tools_.wants_round && tools_.wants_round(now_)) return Watched::End::another_round;
    judge_anew();
  }
  if (all_done() && !reopened_for_residue()) return Watched::End::settled;
  if (deadline.passed()) return Watched::End::deadline;
  return std::nullopt;
}

Watched Watch::run(Deadline deadline) {
  milliseconds distance = policy_.sample_distance;
  if (all_done()) return result(Watched::End::settled);
  for (;;) {
    if (wait_for(tools_.wake, Deadline::after(distance))) return result(Watched::End::interrupted);
    distance = std::min(distance + distance / 2, kLongestSampleDistance);
    take_figures(deadline);
    judge_all();
    if (const auto end = finish_or_go_on(deadline)) return result(*end);
  }
}

void Watch::show() const {
  if (tools_.observer == nullptr) return;
  std::vector<WatchedGpu> gpus;
  for (const auto& track : tracks_)
    gpus.push_back({track.index, track.view.before, track.view.used, track.judgement.verdict});
  tools_.observer->on_release(gpus);
}

Watched Watch::result(Watched::End end) {
  Watched watched;
  watched.end = end;
  for (auto& track : tracks_) {
    Release release;
    release.proof = track.judgement.proof;
    auto& outcome = release.outcome;
    outcome.index = track.index;
    for (const auto& gpu : request_.before.snapshot.gpus)
      if (gpu.index == track.index) outcome.uuid = gpu.uuid;
    outcome.before = track.view.before;
    outcome.after = track.view.used;
    outcome.baseline = track.view.baseline;
    outcome.verdict = track.judgement.verdict;
    outcome.held_by = track.view.holders;
    outcome.detail = track.judgement.detail;
    outcome.seconds = std::chrono::duration<double>(track.decided.value_or(Clock::now()) - request_.started).count();
    watched.releases.push_back(std::move(release));
  }
  watched.last = std::move(now_);
  return watched;
}

}  // namespace

Watched watch_release(const WatchRequest& request, Sighting first, const WatchTools& tools, const Policy& policy,
                      Deadline deadline) {
  return Watch(request, std::move(first), tools, policy).run(deadline);
}

}  // namespace vacate
