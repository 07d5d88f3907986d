// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/expect.h"

#include <gmock/gmock.h>

#include <csignal>

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ActorStatus living(std::string name, pid_t pid, std::map<int, unsigned> signals = {}) {
  ActorStatus status;
  status.name = std::move(name);
  status.pid = pid;
  status.signals = std::move(signals);
  for (const auto& [number, count] : status.signals) status.signal_count += count;
  return status;
}

ActorStatus ended(std::string name, pid_t pid, std::string by) {
  ActorStatus status = living(std::move(name), pid);
  status.exited = true;
  status.ended_by = std::move(by);
  return status;
}

Observation seen() {
  Observation seen;
  seen.result.exit_code = 0;
  seen.result.seconds = 1;
  seen.result.out = R"({"verdict":"released","plan":{"steps":[1,2]}})";
  seen.result.err = "a warning\n";
  seen.used = {4, 30004};
  seen.before = {living("tp0", 10), living("tp1", 11), living("other", 12, {{SIGUSR1, 1}})};
  seen.after = {ended("tp0", 10, "TERM"), ended("tp1", 11, "exit"), living("other", 12, {{SIGUSR1, 1}}),
                living("late", 0)};
  seen.shm = {"psm_a", "psm_b"};
  seen.earlier = {{"same", seen.result.out}, {"dry", R"({"plan":{"steps":[1,3]}})"}};
  return seen;
}

std::vector<std::string> differ(const Expectations& expect, const Observation& observation = seen()) {
  return differences(expect, observation, {});
}

TEST(Differences, NothingIsCheckedThatIsNotExpected) { EXPECT_THAT(differ({}), IsEmpty()); }

TEST(Differences, WhatIsAsExpectedIsSilent) {
  Expectations expect;
  expect.within = 2;
  expect.at_least = 0.5;
  expect.exit = {3, 0};
  expect.gone = {"tp*"};
  expect.alive = {"other"};
  expect.ended_by = {{"tp0", "TERM"}, {"tp1", "exit"}};
  expect.used = {{0, 4}, {1, 30004}};
  expect.shm_gone = {"psm_c*"};
  expect.shm_kept = {"psm_*"};
  expect.has = {"released", "warning"};
  expect.lacks = {"error"};
  expect.same_bytes_as = "same";
  expect.json_same = {{"/plan/steps", "same"}};
  expect.json = {{"/verdict", expect::Equal{{"\"released\""}}, {}}};
  EXPECT_THAT(differ(expect), IsEmpty());
}

TEST(Differences, TimeAndExit) {
  Expectations expect;
  expect.within = 0.5;
  expect.exit = {0, 1};
  Observation late = seen();
  late.result.exit_code = 143;
  late.result.signal = SIGTERM;
  EXPECT_THAT(differ(expect, late), ElementsAre("within: expected 0.5 s at most, found 1.00",
                                                "exit: expected 0 or 1, found 143 (signal TERM)"));
  expect.within = 5;
  expect.exit = {};
  expect.at_least = 2;
  EXPECT_THAT(differ(expect), ElementsAre("at_least: expected 2 s or more, found 1.00"));
  late.result.timed_out = true;
  EXPECT_THAT(differ(expect, late), ElementsAre("within: expected 5 s at most, and it was ended when that was over"));
}

TEST(Differences, Processes) {
  Expectations expect;
  expect.gone = {"other", "late"};
  expect.alive = {"tp0"};
  expect.ended_by = {{"tp*", "TERM"}, {"other", "KILL"}};
  EXPECT_THAT(differ(expect), ElementsAre("gone: expected other (pid 12) to have ended, it lives",
                                          "gone: 'late' names no process that has been started",
                                          "alive: expected tp0 (pid 10) to live, it has ended (TERM)",
                                          "ended_by: expected tp1 (pid 11) to end by TERM, found exit",
                                          "ended_by: expected other (pid 12) to end by KILL, it lives"));
}

TEST(Differences, ASignalThatWasSurvivedCounts) {
  Expectations expect;
  expect.alive = {"other"};
  Observation signalled = seen();
  signalled.after[2] = living("other", 12, {{SIGUSR1, 1}, {SIGTERM, 1}});
  EXPECT_THAT(differ(expect, signalled), ElementsAre("alive: expected other (pid 12) to get no signal, it got TERM"));
  signalled.after[2] = living("other", 12, {{SIGUSR1, 2}});
  EXPECT_THAT(differ(expect, signalled), ElementsAre("alive: expected other (pid 12) to get no signal, it got USR1"));
}

TEST(Differences, TheSignalsOfAFormerBearerOfTheNameDoNotCount) {
  Expectations expect;
  expect.alive = {"other"};
  Observation respawned = seen();
  respawned.before[2] = living("other", 12, {{SIGTERM, 5}});
  respawned.after[2] = living("other", 99, {{SIGTERM, 1}});
  EXPECT_THAT(differ(expect, respawned), ElementsAre("alive: expected other (pid 99) to get no signal, it got TERM"));
}

TEST(Differences, Memory) {
  Expectations expect;
  expect.used = {{0, 5}, {1, 30004}, {7, 4}};
  EXPECT_THAT(differ(expect), ElementsAre("used: expected 5 MiB on GPU 0, found 4",
                                          "used: expected 4 MiB on GPU 7, the driver has no such GPU"));
}

TEST(Differences, SharedMemory) {
  Expectations expect;
  expect.shm_gone = {"psm_a"};
  expect.shm_kept = {"psm_*", "x*"};
  ShmSpec lost;
  lost.name = "psm_z";
  EXPECT_THAT(differences(expect, seen(), {lost}), ElementsAre("shm_gone: expected 'psm_a' to be gone, it is there",
                                                               "shm_kept: expected 'psm_z' to be there, it is gone",
                                                               "shm_kept: expected 'x*' to be there, it is gone"));
}

TEST(Differences, Output) {
  Expectations expect;
  expect.has = {"refused"};
  expect.lacks = {"warning"};
  expect.same_bytes_as = "dry";
  EXPECT_THAT(differ(expect),
              ElementsAre("has: expected 'refused' in the output, it is not there",
                          "lacks: expected no 'warning' in the output, it is there",
                          "same_bytes_as: expected the output of step 'dry', found another from byte 2 on"));
}

TEST(Differences, JsonOutput) {
  Expectations expect;
  expect.json = {{"/verdict", expect::Equal{{"\"refused\""}}, {}}};
  expect.json_same = {{"/plan/steps", "dry"}, {"/plan/x", "dry"}};
  EXPECT_THAT(differ(expect), ElementsAre("json: /verdict: expected \"refused\", found \"released\"",
                                          "json_same: /plan/steps: expected [1,3], found [1,2]",
                                          "json_same: /plan/x: in the output of step 'dry' there is no 'x' in "
                                          "{\"steps\":[1,3]}"));
  Observation broken = seen();
  broken.result.out = "GPU 0";
  EXPECT_THAT(differ(expect, broken),
              ElementsAre("json: expected one JSON value on standard output, found something else"));
}

const PidOf kPids = [](std::string_view name) -> vacate::Result<long> {
  if (name == "tp0") return 42L;
  return vacate::Error{vacate::ErrorCode::malformed, "no such name"};
};

TEST(WithPids, ReplacesEveryMark) {
  EXPECT_EQ(*with_pids("/h/pid={pid:tp0}/{pid:tp0}", kPids), "/h/pid=42/42");
  EXPECT_EQ(*with_pids("{pid", kPids), "{pid");
  EXPECT_EQ(with_pids("{pid:x}", kPids).error().message, "no such name");
}

TEST(WithPids, ReachesEveryTextOfTheExpectations) {
  Expectations expect;
  expect.has = {"{pid:tp0}"};
  expect.lacks = {"{pid:tp0}"};
  expect.json = {{"/pid={pid:tp0}", expect::Contains{"{pid:tp0}"}, {}}, {"/p", expect::Equal{{"\"{pid:tp0}\""}}, {}}};
  expect.json_same = {{"/pid={pid:tp0}", "dry"}};
  const auto replaced = with_pids(expect, kPids);
  ASSERT_TRUE(replaced);
  EXPECT_THAT(replaced->has, ElementsAre("42"));
  EXPECT_THAT(replaced->lacks, ElementsAre("42"));
  EXPECT_EQ(replaced->json[0].pointer, "/pid=42");
  EXPECT_EQ(std::get<expect::Contains>(replaced->json[0].wanted).text, "42");
  EXPECT_EQ(std::get<expect::Equal>(replaced->json[1].wanted).value.text, "\"42\"");
  EXPECT_EQ(replaced->json_same[0].first, "/pid=42");
}

}  // namespace
}  // namespace lab
