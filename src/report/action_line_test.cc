// SPDX-License-Identifier: Apache-2.0
#include "report/action_line.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace vacate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ActionEntry signal_entry() {
  ActionEntry entry;
  entry.time = 1'772'384'645.25;
  entry.author = {"00c0ffee00c0ffee", 815, 0, 1000};
  entry.number = 3;
  entry.boot_id = "5d1c4f5a-0000-4000-8000-000000000001";
  entry.plan = "0123456789abcdef";
  entry.n = 2;
  entry.action = "signal";
  entry.signal = "TERM";
  entry.pid = 4711;
  entry.key = "4711@156405";
  entry.title = "VLLM::Worker_TP0";
  entry.because = {"a context on GPU 0", "its parent has ended"};
  return entry;
}

ActionEntry result_entry() {
  auto entry = signal_entry();
  entry.phase = EntryPhase::result;
  entry.because.clear();
  entry.result = "denied";
  entry.detail = "Operation not permitted";
  return entry;
}

TEST(ActionLine, IsReadBackAsItWas) {
  ActionEntry unlink;
  unlink.author.run = "1";
  unlink.number = 1;
  unlink.action = "unlink";
  unlink.target = "/dev/shm/psm_0000000a";
  for (const auto& entry : {signal_entry(), result_entry(), unlink}) {
    const auto line = action_line(entry);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_EQ(parse_action_line(line), entry) << line;
  }
}

TEST(ActionLine, WhatAProcessCallsItselfIsOneCleanLine) {
  auto entry = signal_entry();
  entry.title = "\x1b[2J\n{\"schema\":\xff\xe2\x80\xae";
  entry.because = {std::string(100'000, 'a'), "b\nc"};
  for (int i = 0; i < 100; ++i) entry.because.emplace_back("one more");
  const auto line = action_line(entry);
  EXPECT_EQ(line, printable(line, line.size()));
  EXPECT_LT(line.size(), kLongestActionLine / 2);
  const auto back = parse_action_line(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->title, R"(\x1b[2J\x0a{"schema":\xff\u{202e})");
  EXPECT_EQ(back->because.at(1), "b\\x0ac");
}

TEST(ActionLine, TheLongestPathFits) {
  auto entry = result_entry();
  entry.target = std::string(4096, '\xff');
  entry.title = entry.detail = entry.target;
  entry.because.assign(40, entry.target);
  EXPECT_LE(action_line(entry).size(), kLongestActionLine);
}

TEST(ActionLine, NothingElseIsALineOfOurs) {
  const auto line = action_line(signal_entry());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = line;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  EXPECT_TRUE(parse_action_line(with("\"login_uid\":1000", "\"login_uid\":null,\"later\":{}")));
  const std::string rows[] = {
      "",
      "{}",
      "null",
      "[]",
      line.substr(0, line.size() - 1),
      line + "}",
      line + line,
      std::string(1, '\0') + line,
      std::string(kLongestActionLine + 1, ' '),
      std::string(60'000, '['),
      with("vacate.record/1", "vacate.record/2"),
      with("\"phase\":\"intent\"", "\"phase\":\"perhaps\""),
      with("\"phase\":\"intent\"", "\"phase\":\"result\""),
      with("\"number\":3", "\"number\":0"),
      with("\"number\":3", "\"number\":-3"),
      with("\"n\":2", "\"n\":4294967296"),
      with("\"pid\":4711", "\"pid\":2147483648"),
      with("\"pid\":4711", "\"pid\":\"4711\""),
      with("\"uid\":0", "\"uid\":null"),
      with("\"uid\":0", "\"uid\":0.5"),
      with("\"epoch\":1772384645.25", "\"epoch\":1e300"),
      with("\"epoch\":1772384645.25", "\"epoch\":-1"),
      with("\"epoch\":1772384645.25", "\"epoch\":null"),
      with("\"because\":[", "\"because\":[7,"),
      with("\"action\":\"signal\"", "\"action\":\"\""),
      with("\"run\":\"00c0ffee00c0ffee\"", "\"run\":null"),
  };
  for (const auto& row : rows) EXPECT_FALSE(parse_action_line(row)) << row.substr(0, 400);
}

TEST(ActionLine, TheSentenceSaysWhatAndWhy) {
  EXPECT_EQ(action_sentence(signal_entry()),
            "about to: TERM 4711@156405 (VLLM::Worker_TP0), because a context on GPU 0; its parent has ended");
  EXPECT_EQ(action_sentence(result_entry()), "TERM 4711@156405 (VLLM::Worker_TP0): denied (Operation not permitted)");
  auto entry = signal_entry();
  entry.title = "a\nb";
  EXPECT_THAT(action_sentence(entry), AllOf(HasSubstr("a\\x0ab"), Not(HasSubstr("\n"))));
}

}  // namespace
}  // namespace vacate
