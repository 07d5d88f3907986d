// SPDX-License-Identifier: Apache-2.0
#include "report/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kExited3 = 3 << 8;
constexpr int kKilledByTerm = 15;
constexpr int kCoreDumpedByQuit = 3 | 0x80;

RunOutcome ended_with(int status) {
  RunOutcome outcome;
  outcome.argv = {"train"};
  outcome.pid = 11;
  outcome.status = status;
  return outcome;
}

EndedProcess process(pid_t pid, StepStatus status) { return {{pid, 77, 0, 0}, "rank", status, {"TERM"}, 0.5, ""}; }

RunOutcome not_started(int number) {
  RunOutcome outcome;
  outcome.argv = {"train"};
  outcome.exec_errno = number;
  outcome.exec_problem = "cannot be started";
  return outcome;
}

TEST(RunOutcomes, TheExitCodeIsThatOfTheCommandWhereNothingWentWrong) {
  EXPECT_EQ(exit_code_of(ended_with(0)), 0);
  EXPECT_EQ(exit_code_of(ended_with(kExited3)), 3);
  EXPECT_EQ(exit_code_of(ended_with(255 << 8)), 255);
  EXPECT_EQ(exit_code_of(ended_with(kKilledByTerm)), 143);
  EXPECT_EQ(exit_code_of(ended_with(kCoreDumpedByQuit)), 131);
  EXPECT_EQ(ending_signal_of(ended_with(kKilledByTerm)), 15);
  EXPECT_EQ(ending_signal_of(ended_with(kCoreDumpedByQuit)), 3);
  EXPECT_EQ(ending_signal_of(ended_with(kExited3)), 0);
  EXPECT_EQ(exit_code_of(not_started(ENOENT)), 127);
  EXPECT_EQ(exit_code_of(not_started(EACCES)), 126);
  EXPECT_EQ(exit_code_of(not_started(E2BIG)), 126);
}

TEST(RunOutcomes, WhatWentWrongIsNeverHiddenBehindTheCommandsCode) {
  for (const int status : {0, kExited3, kKilledByTerm}) {
    auto outcome = ended_with(status);
    outcome.left.somebody_left = true;
    EXPECT_EQ(exit_code_of(outcome), 125);
    EXPECT_EQ(ending_signal_of(outcome), 0);
    outcome = ended_with(status);
    outcome.unreleased = {"gpu 0: not back"};
    EXPECT_EQ(exit_code_of(outcome), 125);
    outcome = ended_with(status);
    outcome.failure = "the keeper was ended";
    EXPECT_EQ(exit_code_of(outcome), 125);
  }
  EXPECT_EQ(exit_code_of(RunOutcome{}), 125);  // nobody saw it end
}

TEST(RunReport, NothingLeftIsNotWorthALine) {
  EXPECT_THAT(render_run_lines(ended_with(kExited3), RunDetail::what_was_ended), IsEmpty());
}

TEST(RunReport, WhatWasEndedInOrderIsNamedWhereItIsWanted) {
  auto outcome = ended_with(0);
  outcome.left.processes = {process(12, StepStatus::gone), process(13, StepStatus::gone)};
  outcome.left.unnamed = 4;
  EXPECT_THAT(
      render_run_lines(outcome, RunDetail::what_was_ended),
      ElementsAre("the command left processes behind (found by descent), ended: 12 (rank), 13 (rank) and 4 more"));
  EXPECT_THAT(render_run_lines(outcome, RunDetail::what_went_wrong), IsEmpty());
}

TEST(RunReport, SurvivorsAreNamedWithTheReason) {
  auto outcome = ended_with(0);
  outcome.left.somebody_left = true;
  outcome.left.processes = {process(12, StepStatus::gone), process(13, StepStatus::timed_out)};
  outcome.left.processes[1].detail = "still there";
  EXPECT_THAT(render_run_lines(outcome, RunDetail::what_went_wrong),
              ElementsAre("left of the command: 13 (rank)", "13 (rank): still there"));
  outcome.left.processes.clear();
  EXPECT_THAT(render_run_lines(outcome, RunDetail::what_went_wrong), ElementsAre(HasSubstr("cannot be seen")));
}

TEST(RunReport, JsonHasTheSameFactsAndNoHostileBytes) {
  auto outcome = ended_with(kKilledByTerm);
  outcome.left.processes = {process(12, StepStatus::gone)};
  outcome.left.processes[0].title = "a\n\x1b[2Jb";
  outcome.control_group = "/vacate-run-7";
  const std::string json = render_run_json(outcome);
  EXPECT_THAT(json, HasSubstr(R"("schema":"vacate.run/1","verdict":"nothing-left","exit":143)"));
  EXPECT_THAT(json, HasSubstr(R"("exit":null,"signal":15)"));
  EXPECT_THAT(json, HasSubstr(R"("kind":"cgroup","cgroup":"/vacate-run-7")"));
  EXPECT_THAT(json, HasSubstr(R"("pid":12,"key":"12@77")"));
  EXPECT_THAT(json, Not(HasSubstr("\x1b")));
  EXPECT_EQ(json.find('\n'), json.size() - 1);
}

}  // namespace
}  // namespace vacate
