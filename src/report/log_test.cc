// SPDX-License-Identifier: Apache-2.0
#include "report/log.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace vacate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Entries = std::vector<std::pair<ActionEntry, std::string>>;

ActionEntry intent(std::uint64_t number, double time) {
  ActionEntry entry;
  entry.time = time;
  entry.author.run = "00c0ffee00c0ffee";
  entry.number = number;
  entry.plan = "0123456789abcdef";
  entry.n = static_cast<unsigned>(number);
  entry.action = "signal";
  entry.signal = "TERM";
  entry.pid = 4711;
  entry.key = "4711@156405";
  entry.title = "train";
  entry.because = {"a context on GPU 0"};
  return entry;
}

ActionEntry result(std::uint64_t number, double time, std::string word = "done") {
  auto entry = intent(number, time);
  entry.phase = EntryPhase::result;
  entry.because.clear();
  entry.result = std::move(word);
  return entry;
}

LogReport report_of(const Entries& entries) {
  return {
      {{"journal", LogSource::State::absent, "", 0, 0}, {"/var/log/vacate.jsonl", LogSource::State::read, "", 2, 0}},
      join_entries(entries)};
}

TEST(Log, AnActionIsItsTwoEntriesWhereverTheyWent) {
  const auto actions = join_entries({{intent(1, 10), "journal"}, {result(1, 11), "/var/log/vacate.jsonl"}});
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].entry.result, "done");
  EXPECT_EQ(actions[0].entry.because.size(), 1U);
  EXPECT_EQ(actions[0].entry.time, 10);
  EXPECT_EQ(actions[0].ended, 11);
}

TEST(Log, WhatWasNeverAnsweredForIsNotKnown) {
  const auto report = report_of({{intent(1, 10), "f"}, {result(1, 11), "f"}, {intent(2, 12), "f"}});
  ASSERT_EQ(report.actions.size(), 2U);
  EXPECT_FALSE(report.actions[1].ended);
  EXPECT_THAT(render_log_text(report, {}), HasSubstr("not known"));
  EXPECT_THAT(render_log_json(report),
              AllOf(HasSubstr(R"("result":"done")"), HasSubstr(R"("result":null,"result_unknown":"not recorded")")));
}

TEST(Log, AResultWhoseAnnouncementIsLostIsShown) {
  const auto actions = join_entries({{result(7, 11, "gone"), "f"}});
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_FALSE(actions[0].announced);
  EXPECT_EQ(actions[0].entry.result, "gone");
}

TEST(Log, NobodyAnswersForAnother) {
  auto forged = result(1, 11);
  forged.author.uid = 1000;
  const auto actions = join_entries({{intent(1, 10), "journal"}, {forged, "journal"}});
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_FALSE(actions[0].ended);
}

TEST(Log, TheNewestIsLast) {
  const auto actions = join_entries({{intent(2, 20), "f"}, {intent(1, 10), "f"}});
  EXPECT_EQ(actions.at(0).entry.number, 1U);
  EXPECT_EQ(actions.at(1).entry.number, 2U);
}

TEST(Log, EveryFilterHasToFit) {
  const auto action = join_entries({{intent(1, 10), "f"}}).at(0);
  EXPECT_TRUE(is_wanted(action, {}));
  EXPECT_TRUE(is_wanted(action, {10, {{4711, 156405}}, "0123"}));
  EXPECT_FALSE(is_wanted(action, {10.5, {}, ""}));
  EXPECT_FALSE(is_wanted(action, {{}, {{4711, 9}}, ""}));
  EXPECT_FALSE(is_wanted(action, {{}, {{471, {}}}, ""}));
  EXPECT_FALSE(is_wanted(action, {{}, {}, "123"}));
  auto unlink = intent(2, 10);
  unlink.key.clear();
  EXPECT_FALSE(is_wanted(join_entries({{unlink, "f"}}).at(0), {{}, {{4711, {}}}, ""}));
}

TEST(Log, ASourceThatCannotBeReadIsSaidAndCounts) {
  auto report = report_of({});
  EXPECT_EQ(exit_code_of(report), ExitCode::done);
  EXPECT_EQ(render_log_text(report, {}), "nothing is recorded that fits\n");
  report.sources[1].damaged = 2;
  EXPECT_EQ(exit_code_of(report), ExitCode::done) << "damage is said, and hides nothing else";
  EXPECT_THAT(render_log_text(report, {}), HasSubstr("2 damaged lines of /var/log/vacate.jsonl"));
  report.sources[0] = {"journal", LogSource::State::unreadable, "libsystemd.so.0 is not there", 0, 0};
  EXPECT_EQ(exit_code_of(report), ExitCode::cannot_tell);
  EXPECT_THAT(render_log_text(report, {}), HasSubstr("libsystemd.so.0"));
}

TEST(Log, KeepsTo80ColumnsAndObeysNobody) {
  auto hostile = intent(1, 10);
  hostile.title = std::string(300, 'x') + "\x1b[2J\n";
  hostile.because = {std::string(30, 'y') + " " + std::string(60, 'z'), "\x1b]0;"};
  hostile.action = hostile.signal = std::string(200, 'w');
  auto unlink = result(2, 11, std::string(99, 'v'));
  unlink.key.clear();
  unlink.target = "/dev/shm/" + std::string(250, 'n');
  const auto text = render_log_text(report_of({{hostile, "f"}, {unlink, "f"}}), {});
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80U) << line;
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace vacate
