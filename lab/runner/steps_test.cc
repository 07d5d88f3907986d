// SPDX-License-Identifier: Apache-2.0
// Whole cases in real machines, with /bin/sh in the place of the product: does each verb and each expectation pass
// where it should, and fail with the right words where it should not? Needs root and the actor program beside the
// tests.
#include "lab/runner/steps.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "lab/case/parse.h"
#include "lab/runner/case_worker.h"

namespace lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Steps : public ::testing::Test {
 protected:
  static CaseResult run(const std::string& text) {
    const auto scenario = parse_case("title = 't'\n" + text, "t.toml");
    EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().message);
    if (!scenario) return {};
    const auto actor = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vacate-lab-actor";
    CaseSettings settings;
    settings.paths.actor = actor.string();
    auto worker = CaseWorker::start(*scenario, settings);
    EXPECT_TRUE(worker);
    return worker ? worker->finish() : CaseResult{};
  }

  /// What the report says about a case that has to fail; "passed" or "skipped" if it does not.
  static std::string failure(const std::string& text) {
    const CaseResult result = run(text);
    if (result.verdict == Verdict::failed) return result.details;
    return result.verdict == Verdict::passed ? "passed" : "skipped";
  }

  static void expect_pass(const std::string& text) {
    const CaseResult result = run(text);
    if (result.verdict == Verdict::skipped) GTEST_SKIP() << result.details;
    EXPECT_EQ(result.verdict, Verdict::passed) << result.details;
  }
};

const std::string kActors =
    "[[actor]]\nname = 'a'\nholds = [{ gpu = 0, memory = 1000 }]\n"
    "[[actor]]\nname = 'b'\non_term = 'ignore'\nholds = [{ gpu = 0, memory = 500 }]\n";

TEST_F(Steps, SignalsExitsAndWhatTheDriverSays) {
  expect_pass(kActors +
              "[[step]]\nrun = ['true']\nexit = 0\nused = { '0' = 1504 }\nalive = ['*']\n"
              "[[step]]\nsignal = { to = 'a', with = 'TERM' }\n[[step]]\nexits = 'a'\n"
              "[[step]]\nsignal = { to = ['b'], with = 'TERM' }\n"
              "[[step]]\nrun = ['true']\ngone = ['a']\nalive = ['b']\nended_by = { a = 'TERM' }\nused = { '0' = 504 }\n"
              "[[step]]\nrun = ['sh', '-c', 'kill -KILL {pid:b}; while test -e /proc/{pid:b}; do :; done']\n"
              "gone = ['a', 'b']\nended_by = { b = 'KILL' }\nused = { '0' = 4 }\n");
}

TEST_F(Steps, OutputJsonAndEarlierSteps) {
  expect_pass(
      kActors +
      "[[step]]\nname = 'first'\nsave = '/tmp/plan.json'\n"
      "run = ['echo', '{\"v\":\"ok\",\"h\":[{\"pid\":{pid:a},\"mem\":1048576000}],\"n\":null}']\nhas = ['{pid:a}']\n"
      "lacks = ['{pid:b},']\n"
      "json = { '/v' = 'ok', '/h/pid={pid:a}/mem' = '1000MiB', '/h' = { length = 1 }, '/h/0/pid' = '{pid:a}' }\n"
      "[[step]]\nrun = ['cat', '/tmp/plan.json']\nsame_bytes_as = 'first'\njson_same = { '/h' = 'first' }\n");
}

TEST_F(Steps, UserTerminalInputAndPlace) {
  expect_pass(kActors +
              "[[step]]\nrun = ['id', '-un']\nuser = 'alice'\nhas = ['alice']\n"
              "[[step]]\nrun = ['cat']\nstdin = 'hello'\nhas = ['hello']\n"
              "[[step]]\nrun = ['sh', '-c', 'test -t 0 && test -t 1 && test ! -t 9']\ntty = true\nexit = 0\n"
              "[[step]]\nrun = ['sh', '-c', 'echo parent $PPID']\nchild_of = 'a'\nhas = ['parent {pid:a}']\n");
}

TEST_F(Steps, BackgroundAndTimes) {
  expect_pass(
      "[[step]]\nrun = ['sh', '-c', 'sleep 0.5; exit 3']\nbackground = 'x'\n[[step]]\nsleep = 0.1\n"
      "[[step]]\nfinish = 'x'\nwithin = 30\nat_least = 0.4\nexit = [3, 4]\n");
}

TEST_F(Steps, AFailureSaysStepLineExpectedFoundAndOutput) {
  const std::string text = failure(kActors +
                                   "[[step]]\nrun = ['sh', '-c', 'echo out; echo err >&2; exit 7']\nexit = 0\n"
                                   "gone = ['a']\nused = { '0' = 4 }\nended_by = { b = 'KILL' }\n");
  EXPECT_THAT(text, HasSubstr("step 1, t.toml:10: sh -c 'echo out; echo err >&2; exit 7'\n"));
  EXPECT_THAT(text, HasSubstr("    exit: expected 0, found 7\n"));
  EXPECT_THAT(text, HasSubstr("    gone: expected a (pid "));
  EXPECT_THAT(text, HasSubstr("    used: expected 4 MiB on GPU 0, found 1504\n"));
  EXPECT_THAT(text, HasSubstr("    ended_by: expected b (pid "));
  EXPECT_THAT(text, HasSubstr("    standard output:\n    | out\n    standard error:\n    | err\n"));
}

TEST_F(Steps, ASignalThatIsIgnoredIsSeen) {
  const std::string text = failure(kActors + "[[step]]\nrun = ['kill', '-TERM', '{pid:b}']\nalive = ['b']\n");
  EXPECT_THAT(text, HasSubstr("to get no signal, it got TERM"));
}

TEST_F(Steps, WhatEndsIsNotAlive) {
  const std::string text =
      failure(kActors +
              "[[step]]\nrun = ['sh', '-c', 'kill -TERM {pid:a}; while test -e /proc/{pid:a}; do :; done']\n"
              "alive = ['a', 'b']\n");
  EXPECT_THAT(text, HasSubstr("to live, it has ended (TERM)"));
  EXPECT_THAT(text, Not(HasSubstr("expected b")));
}

TEST_F(Steps, ACommandThatIsTooSlowIsEnded) {
  const std::string text = failure("[[step]]\nrun = ['sleep', '100']\nwithin = 0.3\n");
  EXPECT_THAT(text, HasSubstr("within: expected 0.3 s at most, and it was ended when that was over"));
}

TEST_F(Steps, WhoDoesNotEndIsNamed) {
  EXPECT_THAT(failure(kActors + "[[step]]\nexits = 'b'\n"), HasSubstr("exits: expected b to end within 5 s, it lives"));
}

TEST_F(Steps, WhatTheLabCannotDoIsAnErrorByName) {
  EXPECT_THAT(failure("[[actor]]\nname = 'a'\nrespawn = ['b']\n"
                      "[[actor]]\nname = 'b'\nparent = 'a'\nstate = 'stopped'\n"),
              HasSubstr("the lab cannot do this yet: actor 'a': respawn"));
}

TEST_F(Steps, TheNumberOfTheLivingIsNotGivenAgain) {
  EXPECT_THAT(failure("[[actor]]\nname = 'a'\nstart = 'later'\n[[actor]]\nname = 'b'\n"
                      "[[step]]\npid_reuse = { of = 'b', by = 'a' }\n"),
              HasSubstr("is still the number of a process or a group"));
}

}  // namespace
}  // namespace lab
