// SPDX-License-Identifier: Apache-2.0
// A wait on a machine that is told, question by question, what there is to see.
#include "app/wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TestMachine;

Snapshot idle() { return TestMachine().snapshot(); }

Snapshot held() {
  TestMachine machine;
  machine.actor("tenant").hold("tenant", {{0}, 9000});
  return machine.snapshot();
}

Snapshot left_over() {
  TestMachine machine;
  machine.actor("main").actor("rank", {.parent = "main"}).hold("rank", {{0}, 9000}).dies("main");
  return machine.snapshot();
}

/// The library does not answer, and nobody holds anything.
Snapshot silent() {
  Snapshot snapshot = idle();
  snapshot.driver.state = DriverState::no_answer;
  snapshot.driver.detail = "the driver does not answer";
  for (auto& gpu : snapshot.gpus) gpu.memory = {Unknown::timed_out, Unknown::timed_out, {}, {}};
  return snapshot;
}

/// Not even its module is there.
Snapshot booting() {
  Snapshot snapshot = silent();
  snapshot.gpus.clear();
  return snapshot;
}

class WaitTest : public ::testing::Test, public WaitObserver {
 protected:
  WaitTest() {
    policy_.sample_distance = 2ms;
    request_.hold = 20ms;
    request_.timeout = 5s;
  }

  void on_change(const WaitReport& now) override { told_.push_back(render_wait_status(now)); }
  void on_sample(const WaitReport&) override {}
  void on_absence(std::chrono::milliseconds) override { ++absences_; }

  /// What is there at each question, the last one for good.
  WaitReport wait(std::vector<Snapshot> moments, const std::vector<std::string>& gpus = {}) {
    moments_ = std::move(moments);
    WaitTools tools{[this] {
                      ++looks_;
                      std::this_thread::sleep_for(look_takes_);
                      Look look{{next(), {}}, {}};
                      look.attribution = attribute_holders(look.scan.snapshot, policy_);
                      return look;
                    },
                    [this](Deadline) {
                      ++samples_;
                      const auto seen = next();
                      return DriverSample{seen.driver, seen.gpus, seen.charges, {}};
                    },
                    [this] { ++reopened_; },
                    [this] { ++revived_; },
                    reap_,
                    lock_,
                    *this};
    auto report = wait_for_gpus(request_, gpus, tools, policy_);
    if (report) return *std::move(report);
    error_ = report.error().message;
    return {};
  }

  /// Somebody with 9,000 MiB is there at one sample, when 0.7 to 0.8 of the hold have passed, and at nothing else.
  WaitReport wait_with_one_visit() {
    std::vector<Snapshot> moments(8, idle());
    moments.push_back(held());
    moments.push_back(idle());
    return wait(std::move(moments));
  }

  WaitRequest request_;
  Policy policy_;
  std::function<Result<Reaped>(const std::vector<unsigned>&, std::chrono::milliseconds)> reap_;
  std::function<Result<std::optional<GpuLocks::Busy>>(const std::vector<Gpu>&, Deadline)> lock_;
  std::vector<std::string> told_;
  std::string error_;
  std::chrono::milliseconds look_takes_{0};
  int looks_ = 0, samples_ = 0, reopened_ = 0, revived_ = 0, absences_ = 0;

 private:
  Snapshot next() {
    const auto at = std::min(moments_.size() - 1, asked_++);
    return moments_[at];
  }
  std::vector<Snapshot> moments_;
  std::size_t asked_ = 0;
};

TEST_F(WaitTest, AnIdleMachinePassesOnTwoLooks) {
  const auto report = wait({idle()});
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_GE(report.waited, 0.02);
  EXPECT_EQ(looks_, 2);  // the first, and the one that the verdict rests on
  EXPECT_THAT(render_wait_last_status(report), HasSubstr("GPU 0: free when the wait ended, after "));
}

TEST_F(WaitTest, WhatIsIgnoredIsNotCalledFree) {
  request_.ignored_units = {"other.service"};
  const auto report = wait({idle()});
  EXPECT_THAT(render_wait_outcome(report, {80, Colour::no}),
              HasSubstr("GPU 0 free but for those that were not to count"));
  EXPECT_THAT(render_wait_last_status(report), HasSubstr("GPU 0: free but for those that were not to count when "));
}

TEST_F(WaitTest, OneMomentIsNotEnoughEvenWithoutATimeToHold) {
  request_.hold = 0ms;
  EXPECT_EQ(wait({idle()}).verdict, WaitVerdict::free);
  EXPECT_EQ(looks_, 2);
}

TEST_F(WaitTest, WhoeverIsInTheWayIsToldAtOnceAndAtTheDeadline) {
  request_.timeout = 200ms;
  const auto report = wait({held()});
  EXPECT_EQ(report.verdict, WaitVerdict::timeout);
  EXPECT_EQ(in_the_way(report).size(), 1U);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0], HasSubstr("GPU 0: waiting for 1000 actor"));
  EXPECT_THAT(render_wait_last_status(report), HasSubstr(": waiting for 1000 actor"));
  EXPECT_THAT(render_wait_outcome(report, {80, Colour::no}), Not(HasSubstr("vacate free"))) << "it is no leftover";
}

TEST_F(WaitTest, AtTheDeadlineLeftoversComeWithTheCommandThatEndsThem) {
  request_.timeout = 200ms;
  EXPECT_THAT(render_wait_outcome(wait({left_over()}), {80, Colour::no}), HasSubstr("vacate free --gpu 0\n"));
}

TEST_F(WaitTest, TheCountStartsAnewWhenSomebodyComesBack) {
  request_.hold = 200ms;
  const auto report = wait({idle(), idle(), idle(), held(), held(), held(), idle()});
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_GE(report.waited, 0.25);
  EXPECT_EQ(told_.size(), 3U);  // free, somebody, free
}

TEST_F(WaitTest, SomebodyWhoComesWhileLooksAreDearIsSeenAllTheSame) {
  request_.hold = 200ms;
  look_takes_ = 30ms;  // another one is due after 20 times as long
  const auto report = wait({idle(), idle(), idle(), held(), held(), held(), idle()});
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_EQ(told_.size(), 3U);  // free, somebody, free
}

TEST_F(WaitTest, SomebodyWhoIsGoneBeforeTheLookEndsTheCountToo) {
  request_.hold = 200ms;
  const auto report = wait_with_one_visit();
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_GE(report.waited, 0.3);
}

TEST_F(WaitTest, WhoKeepsBelowTheLimitOfMemoryDoesNotEndTheCount) {
  request_.hold = 2s;
  request_.condition = {ConditionKind::used_below, {mebibytes(10000)}};
  const auto report = wait_with_one_visit();
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_LT(report.waited, 3.2);
}

TEST_F(WaitTest, WhoGoesAboveTheLimitOfMemoryEndsTheCount) {
  request_.hold = 200ms;
  request_.condition = {ConditionKind::used_below, {mebibytes(8000)}};
  const auto report = wait_with_one_visit();
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_GE(report.waited, 0.3);
}

TEST_F(WaitTest, ADriverThatAnswersLateIsNotTooLate) {
  const auto report = wait({silent(), silent(), silent(), idle()});
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_GT(revived_, 0);
}

TEST_F(WaitTest, ABootingDriverMayStillBringTheGpuThatWasNamed) {
  EXPECT_EQ(wait({booting(), booting(), idle()}, {"GPU-0"}).verdict, WaitVerdict::free);
  EXPECT_EQ(wait({idle()}, {"GPU-9"}).gates.size(), 0U);
  EXPECT_THAT(error_, HasSubstr("no GPU is 'GPU-9'"));
}

TEST_F(WaitTest, ASilentDriverUntilTheDeadlineCannotTell) {
  request_.timeout = 150ms;
  EXPECT_EQ(wait({silent()}).verdict, WaitVerdict::cannot_tell);
  EXPECT_EQ(wait({booting()}).verdict, WaitVerdict::cannot_tell);
}

TEST_F(WaitTest, ALeftoverIsEndedOnceAndThenInTheWayLikeAnybody) {
  int reaps = 0;
  reap_ = [&](const std::vector<unsigned>& gpus, std::chrono::milliseconds) -> Result<Reaped> {
    ++reaps;
    EXPECT_THAT(gpus, ElementsAre(0U));
    return Reaped{{{1, 1001, StepStatus::stuck, {"TERM", "KILL"}, 0, ""}}, 0};
  };
  request_.timeout = 300ms;
  const auto report = wait({left_over()});
  EXPECT_EQ(report.verdict, WaitVerdict::timeout);
  EXPECT_EQ(reaps, 1);
  EXPECT_EQ(absences_, 1);
  EXPECT_EQ(report.reaped.size(), 1U);
}

TEST_F(WaitTest, NobodyIsEndedWithoutBeingALeftover) {
  reap_ = [&](const std::vector<unsigned>&, std::chrono::milliseconds) -> Result<Reaped> {
    ADD_FAILURE() << "a live holder";
    return Reaped{};
  };
  request_.timeout = 150ms;
  EXPECT_EQ(wait({held()}).verdict, WaitVerdict::timeout);
}

TEST_F(WaitTest, ASignalDuringTheEndingEndsTheWait) {
  reap_ = [](const std::vector<unsigned>&, std::chrono::milliseconds) -> Result<Reaped> { return Reaped{{}, 15}; };
  EXPECT_EQ(wait({left_over()}).interrupted_by, 15);
}

TEST_F(WaitTest, WithoutTheLockNothingCounts) {
  request_.timeout = 150ms;
  lock_ = [](const std::vector<Gpu>& gpus, Deadline deadline) -> Result<std::optional<GpuLocks::Busy>> {
    EXPECT_EQ(gpus.size(), 1U);
    while (!deadline.passed()) {
    }
    return std::optional(GpuLocks::Busy{0, LockOwner{77, "vacate wait --lock"}});
  };
  const auto report = wait({idle()});
  EXPECT_EQ(report.verdict, WaitVerdict::timeout);
  ASSERT_EQ(report.gates.size(), 1U);
  EXPECT_EQ(report.gates[0].state, GateState::locked);
  EXPECT_THAT(report.gates[0].detail, HasSubstr("process 77 (vacate wait --lock) has the lock of GPU 0"));
}

TEST_F(WaitTest, WithTheLockItGoesOnAsUsual) {
  int tries = 0;
  lock_ = [&](const std::vector<Gpu>&, Deadline) -> Result<std::optional<GpuLocks::Busy>> {
    if (++tries < 3) return std::optional(GpuLocks::Busy{0, std::nullopt});
    return std::optional<GpuLocks::Busy>();
  };
  EXPECT_EQ(wait({idle()}).verdict, WaitVerdict::free);
  EXPECT_EQ(tries, 3);
}

TEST_F(WaitTest, AFigureThatStillFallsIsAReleaseUnderWay) {
  std::vector<Snapshot> moments;
  for (const std::uint64_t used : {900U, 800U, 700U, 600U, 500U, 400U}) {
    auto snapshot = idle();
    snapshot.gpus[0].memory.used = mebibytes(used);
    moments.insert(moments.end(), 4, snapshot);
  }
  request_.hold = 100ms;
  const auto report = wait(moments);
  EXPECT_EQ(report.verdict, WaitVerdict::free);
  EXPECT_EQ(report.gates[0].used.value_or(Bytes{}), mebibytes(400));
}

}  // namespace
}  // namespace vacate
