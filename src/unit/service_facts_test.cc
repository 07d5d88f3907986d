// SPDX-License-Identifier: Apache-2.0
#include "unit/service_facts.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::Optional;

UnitSettings parse_service(const std::string& text) { return UnitSettings::parse({{"a", "[Service]\n" + text}}); }

TEST(ServiceFacts, ReadsSpansAsSystemdDoes) {
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::int64_t>>{{"90", 90'000},
                                                                                      {"1min 30s", 90'000},
                                                                                      {"1min30s", 90'000},
                                                                                      {"0.5", 500},
                                                                                      {"2h", 7'200'000},
                                                                                      {"20ms", 20},
                                                                                      {"5 min", 300'000},
                                                                                      {"1day", 86'400'000}})
    EXPECT_THAT(parse_time_span(text), Optional(milliseconds(wanted))) << text;
  EXPECT_THAT(parse_time_span("infinity"), Optional(milliseconds::max()));
  EXPECT_THAT(parse_time_span(std::string(400, '9')), Optional(milliseconds::max()));
  for (const std::string text : {"", "x", "-5", "5 parsecs", "."})
    EXPECT_EQ(parse_time_span(text), std::nullopt) << text;
}

TEST(ServiceFacts, WritesSpansThatBothRead) {
  for (const std::int64_t each : {0L, 1500L, 90'000L, 300'000L, 3'600'000L})
    EXPECT_THAT(parse_time_span(time_span_text(milliseconds(each))), Optional(milliseconds(each)));
}

TEST(ServiceFacts, FillsInDefaults) {
  const auto none = parse_service("ExecStart=/bin/a\n");
  const auto facts = service_facts(none, "a");
  EXPECT_EQ(facts.type, "simple");
  EXPECT_EQ(facts.kill_mode, "control-group");
  EXPECT_EQ(facts.start_timeout, milliseconds(90'000));
  EXPECT_EQ(facts.notify_access, "none");
  EXPECT_FALSE(facts.may_extend());
  const auto job = parse_service("Type=oneshot\nExecStart=/bin/a\n");
  EXPECT_EQ(service_facts(job, "a").start_timeout, milliseconds::max());
  const auto timed = parse_service("Type=notify\nExecStart=/bin/a\nTimeoutStartSec=1min\nTimeoutSec=0\n");
  EXPECT_EQ(service_facts(timed, "a").start_timeout, milliseconds::max());  // the later of both keys, and 0 is for ever
  EXPECT_EQ(service_facts(timed, "a").notify_access, "main");
}

TEST(ServiceFacts, KnowTheAccount) {
  struct Row {
    const char *text, *prefix, *user, *account;
  };
  for (const auto& [text, prefix, user, account] :
       {Row{"", "llm", "", ""}, Row{"User=root\n", "llm", "root", ""}, Row{"User=0\n", "llm", "0", ""},
        Row{"User=alice\n", "llm", "alice", "alice"}, Row{"User=a.b\n", "llm", "a.b", "a.b"},
        Row{"User=1001\n", "llm", "1001", "1001"}, Row{"User=%i\n", "llm", "%i", ""},
        Row{"DynamicUser=yes\n", "llm", "llm", "llm"}, Row{"DynamicUser=yes\nUser=ml\n", "llm", "ml", "ml"},
        Row{"DynamicUser=yes\n", "l.m", "a dynamic user", ""}, Row{"DynamicUser=yes\n", "", "a dynamic user", ""},
        Row{"DynamicUser=yes\n", "7", "a dynamic user", ""}}) {
    const auto settings = parse_service(text);
    const auto facts = service_facts(settings, prefix);
    EXPECT_EQ(facts.user, user) << text << prefix;
    EXPECT_EQ(facts.account, account) << text << prefix;
  }
}

TEST(ServiceFacts, FindsVacateAndShellsBehindOtherPrograms) {
  const auto of = [](std::string_view line) { return parse_command_line(line).commands.front(); };
  EXPECT_THAT(vacate_arguments(of("/usr/bin/vacate wait --gpu 0")), Optional(ElementsAre("wait", "--gpu", "0")));
  EXPECT_THAT(vacate_arguments(of("/usr/bin/env A=b vacate free")), Optional(ElementsAre("free")));
  EXPECT_EQ(vacate_arguments(of("/bin/echo vacate free")), std::nullopt);
  EXPECT_THAT(shell_script(of("/bin/bash -ec 'a b' x")), Optional(std::string("a b")));
  EXPECT_THAT(shell_script(of("/usr/bin/env bash -l -c x")), Optional(std::string("x")));
  EXPECT_EQ(shell_script(of("/bin/sh /opt/script")), std::nullopt);
  EXPECT_EQ(shell_script(of("/bin/sh -c")), std::nullopt);
  EXPECT_THAT(option_value({"wait", "--timeout=1s", "--timeout", "2s"}, "--timeout"), Optional(std::string("2s")));
  EXPECT_EQ(option_value({"run", "--", "x", "--timeout", "2s"}, "--timeout"), std::nullopt);
}

}  // namespace
}  // namespace vacate
