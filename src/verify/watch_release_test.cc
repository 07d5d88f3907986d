// SPDX-License-Identifier: Apache-2.0
// A machine of one GPU that is told, sample by sample, what its figure and its holders are.
#include "verify/watch_release.h"

#include <gtest/gtest.h>

#include "verify/survivors.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

Process process_of(pid_t pid, pid_t ppid) {
  Process process;
  process.key = {pid, static_cast<std::uint64_t>(pid) * 10, 0, 1};
  process.ppid = ppid;
  process.pgid = process.sid = pid;
  process.comm = "python3";
  process.state = 'S';
  process.threads = 1;
  return process;
}

Sighting sighting(std::uint64_t used, const std::vector<pid_t>& holders, std::uint64_t charged,
                  const Reading<bool>& persistence = true) {
  Sighting result;
  Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.memory.used = mebibytes(used);
  gpu.persistence = persistence;
  result.snapshot.driver.state = DriverState::ok;
  result.snapshot.gpus.push_back(gpu);
  GpuAccount account;
  account.holders = holders;
  account.baseline = Baseline{mebibytes(4), BaselineSource::assumed};
  for (const auto pid : holders) {
    result.snapshot.processes.push_back(process_of(pid, 1));
    result.snapshot.charges.push_back({0, pid, mebibytes(charged), {ContextKind::compute}});
    Holder holder;
    holder.key = process_of(pid, 1).key;
    holder.role = HolderRole::context;
    holder.standing = Standing::leftover;
    holder.gpus.push_back({0, mebibytes(charged), true, {}});
    result.attribution.holders.push_back(holder);
  }
  result.attribution.accounts.push_back(account);
  return result;
}

/// What is seen at each sample; the last entry stays.
struct Moment {
  std::uint64_t used = 0;
  std::vector<pid_t> holders;
  std::uint64_t charged = 0;
};

class WatchTest : public ::testing::Test {
 protected:
  WatchTest() {
    policy_.sample_distance = 5ms;
    policy_.held_by_nobody_after = 120ms;
    policy_.recent_release = 300ms;
  }

  /// Pid 10 was there before, with 60,000 MiB, and has ended.
  Watched watch(std::vector<Moment> moments, std::chrono::milliseconds limit = 5s) {
    moments_ = std::move(moments);
    before_ = sighting(60004, {10}, 60000);
    Step step;
    step.n = 1;
    step.key = process_of(10, 1).key;
    plan_.steps = {step};
    results_ = {{1, 10, StepStatus::gone, {"TERM"}, 0, ""}};
    return run(limit);
  }
  /// Nobody was ended.
  Watched watch_untouched(std::vector<Moment> moments, std::chrono::milliseconds limit = 5s) {
    moments_ = std::move(moments);
    before_ = now();
    return run(limit);
  }

  Policy policy_;
  int samples_ = 0;
  int looks_ = 0;
  int reopened_ = 0;
  Reading<bool> persistence_ = true;
  std::optional<std::uint64_t> used_without_us_;  ///< once our own driver child has gone

 private:
  Sighting now() {
    const auto& moment = moments_[std::min(moments_.size() - 1, static_cast<std::size_t>(samples_))];
    const auto used = reopened_ > 0 && used_without_us_ ? *used_without_us_ : moment.used;
    return sighting(used, moment.holders, moment.charged, persistence_);
  }
  Watched run(std::chrono::milliseconds limit) {
    WatchTools tools;
    tools.look = [this] {
      ++looks_;
      return now();
    };
    tools.sample = [this](Deadline) {
      ++samples_;
      const auto seen = now();
      return DriverSample{seen.snapshot.driver, seen.snapshot.gpus, seen.snapshot.charges, {}};
    };
    tools.reopen_driver = [this] { ++reopened_; };
    return watch_release({before_, plan_, results_, {0}, Clock::now(), Clock::now(), false}, now(), tools, policy_,
                         Deadline::after(limit));
  }

  std::vector<Moment> moments_;
  Sighting before_;
  Plan plan_;
  std::vector<StepResult> results_;
};

TEST_F(WatchTest, MemoryThatIsBackTakesTwoSamples) {
  const auto watched = watch({{4, {}, 0}});
  EXPECT_EQ(watched.end, Watched::End::settled);
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::released);
  EXPECT_EQ(watched.releases.at(0).outcome.before.value(), mebibytes(60004));
  EXPECT_EQ(watched.releases.at(0).outcome.after.value(), mebibytes(4));
  EXPECT_EQ(samples_, 1);
}

TEST_F(WatchTest, OneGoodSampleAmongBadOnesIsNotEnough) {
  const auto watched = watch({{4, {}, 0}, {60004, {}, 0}, {4, {}, 0}});
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::released);
  EXPECT_GE(samples_, 3);
}

TEST_F(WatchTest, PlateausAreNotTheFloor) {
  std::vector<Moment> steps;
  for (const std::uint64_t used : {60004U, 60004U, 40004U, 40004U, 40004U, 20004U, 20004U, 4U})
    steps.push_back({used, {}, 0});
  const auto watched = watch(steps);
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::released);
  EXPECT_EQ(watched.releases.at(0).outcome.after.value(), mebibytes(4));
}

TEST_F(WatchTest, ANewTenantIsNotWaitedFor) {
  const auto watched = watch({{60004, {}, 0}, {80004, {20}, 20000}, {80004, {20}, 20000}, {20004, {20}, 20000}});
  EXPECT_EQ(watched.end, Watched::End::settled);
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::in_use);
  EXPECT_EQ(watched.releases.at(0).proof, Proof::seen);
  EXPECT_EQ(watched.releases.at(0).outcome.held_by, std::vector<pid_t>{20});
  EXPECT_GE(samples_, 3);
  EXPECT_GE(looks_, 1);
}

TEST_F(WatchTest, AtTheDeadlineItIsStillReleasing) {
  const auto watched = watch({{60004, {}, 0}}, 100ms);
  EXPECT_EQ(watched.end, Watched::End::deadline);
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::releasing);
  EXPECT_EQ(watched.releases.at(0).proof, Proof::pending);
}

TEST_F(WatchTest, WhatNobodyReleasesIsHeldByNobody) {
  const auto watched = watch({{60004, {}, 0}});
  EXPECT_EQ(watched.end, Watched::End::settled);
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::held_by_nobody);
  EXPECT_GE(watched.releases.at(0).outcome.seconds, 0.29);  // not within `recent_release`
}

// With persistence off our own handle may be all that keeps the device, and what is on it, up (facts.md 2.4).
TEST_F(WatchTest, WhatGoesWithOurOwnDriverChildIsHeldByUsAndNotByNobody) {
  used_without_us_ = 4;
  for (const auto& persistence : {Reading<bool>(false), Reading<bool>(Unknown::not_supported)}) {
    persistence_ = persistence;
    reopened_ = 0;
    const auto watched = watch({{60004, {}, 0}});
    EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::released);
    EXPECT_EQ(watched.releases.at(0).outcome.after.value(), mebibytes(4));
    EXPECT_EQ(reopened_, 1);
  }
}

TEST_F(WatchTest, WhatStaysWithoutOurDriverChildIsHeldByNobody) {
  persistence_ = false;
  EXPECT_EQ(watch({{60004, {}, 0}}).releases.at(0).outcome.verdict, GpuVerdict::held_by_nobody);
  EXPECT_EQ(reopened_, 1);
}

TEST_F(WatchTest, WithPersistenceOnOurDriverChildMayStay) {
  used_without_us_ = 4;
  EXPECT_EQ(watch({{60004, {}, 0}}).releases.at(0).outcome.verdict, GpuVerdict::held_by_nobody);
  EXPECT_EQ(reopened_, 0);
}

TEST_F(WatchTest, UntouchedGpusSettleAtOnce) {
  EXPECT_EQ(watch_untouched({{4, {}, 0}}).releases.at(0).outcome.verdict, GpuVerdict::released);
  EXPECT_EQ(watch_untouched({{30004, {20}, 30000}}).releases.at(0).outcome.verdict, GpuVerdict::in_use);
  EXPECT_LE(samples_, 4);
}

TEST_F(WatchTest, ResidueIsWatchedBeforeItIsCalledHeldByNobody) {
  const auto watched = watch_untouched({{46115, {}, 0}});
  EXPECT_EQ(watched.releases.at(0).outcome.verdict, GpuVerdict::held_by_nobody);
  EXPECT_GE(watched.releases.at(0).outcome.seconds, 0.11);
  EXPECT_EQ(watch_untouched({{46115, {}, 0}}, 30ms).releases.at(0).outcome.verdict, GpuVerdict::cannot_tell);
}

TEST(Replacements, AreNamedWithTheirSupervisor) {
  Sighting before = sighting(100, {10}, 96);
  before.attribution.holders[0].standing = Standing::live;
  before.snapshot.processes[0].ppid = 5;
  before.snapshot.processes.insert(before.snapshot.processes.begin(), process_of(5, 1));
  Plan plan;
  Step step;
  step.n = 1;
  step.key = process_of(10, 5).key;
  plan.steps = {step};
  const std::vector<StepResult> results = {{1, 10, StepStatus::gone, {"TERM"}, 0, ""}};
  Snapshot now;
  now.processes = {process_of(5, 1), process_of(11, 5), process_of(12, 1)};
  EXPECT_TRUE(may_be_replaced(before, plan, results));
  const auto found = find_replacements(before, plan, results, now);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].replacement.pid, 11);
  EXPECT_EQ(found[0].parent, 5);
  before.attribution.holders[0].standing = Standing::leftover;  // its parent only adopted it
  EXPECT_TRUE(find_replacements(before, plan, results, now).empty());
}

TEST(Survivors, AreExplained) {
  Plan plan;
  Step step;
  step.n = 1;
  step.key = process_of(10, 1).key;
  plan.steps = {step};
  std::vector<StepResult> results = {{1, 10, StepStatus::timed_out, {"TERM", "KILL"}, 4, "still there"}};
  Snapshot now;
  now.processes = {process_of(10, 1)};
  now.processes[0].condition = Condition::stuck;
  now.processes[0].state = 'D';
  now.processes[0].wchan = "request_wait_answer";
  explain_survivors(results, plan, now);
  EXPECT_EQ(results[0].status, StepStatus::stuck);
  EXPECT_NE(results[0].detail.find("state D, request_wait_answer"), std::string::npos) << results[0].detail;
}

}  // namespace
}  // namespace vacate
