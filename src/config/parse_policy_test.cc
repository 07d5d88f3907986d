// SPDX-License-Identifier: Apache-2.0
#include "config/parse_policy.h"

#include <random>

#include <gtest/gtest.h>

namespace vacate {
namespace {

using std::chrono::milliseconds;

std::optional<uid_t> find_user(std::string_view name) {
  return name == "alice" ? std::optional<uid_t>(1000) : std::nullopt;
}

Result<Policy> parse(std::string_view text, Policy policy = {}) {
  return add_policy(std::move(policy), {"p.toml", text}, find_user);
}

TEST(ParsePolicy, EverythingItKnows) {
  const auto policy = parse(R"(
[numbers]
memory_tolerance = "64MiB"
largest_assumed_baseline = "2GiB"
driver_deadline = "10s"
held_by_nobody_after = "1min"

[[baseline]]
gpu = "*"
amount = "600MiB"

[[rule]]
name = "serving"
why = "the model server of the shop"
exe = "/opt/serve/*"
user = "alice"
unit = "llm"
cgroup = "/system.slice/*"
role = "context"
action = "forbid"

[[rule]]
name = "slow"
why = "it writes a checkpoint first"
user = 1001
unit = "train@*"
grace = "5min"

[[rule]]
name = "gentle"
why = "KILL wedges the card"
exe = "*/rocm-worker"
action = "term-only"
)");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->memory_tolerance, mebibytes(64));
  EXPECT_EQ(policy->largest_assumed_baseline, gibibytes(2));
  EXPECT_EQ(policy->driver_deadline, milliseconds(10'000));
  EXPECT_EQ(policy->held_by_nobody_after, milliseconds(60'000));
  ASSERT_EQ(policy->baselines.size(), 1U);
  EXPECT_EQ(policy->baselines[0], (ConfiguredBaseline{"*", mebibytes(600)}));
  ASSERT_EQ(policy->rules.size(), 3U);
  EXPECT_EQ(policy->rules[0],
            (PolicyRule{"serving", "the model server of the shop", "p.toml:12", "/opt/serve/*", uid_t{1000},
                        "llm.service", "/system.slice/*", "context", true, false, std::nullopt}));
  EXPECT_EQ(policy->rules[1].uid, uid_t{1001});
  EXPECT_EQ(policy->rules[1].unit, "train@*");
  EXPECT_EQ(policy->rules[1].grace, milliseconds(300'000));
  EXPECT_TRUE(policy->rules[2].term_only);
}

TEST(ParsePolicy, AddsToWhatIsThere) {
  auto first = parse("[[rule]]\nname='a'\nwhy='x'\nuser=1\n[[baseline]]\ngpu='*'\namount='1MiB'\n");
  const auto both = parse("[[rule]]\nname='b'\nwhy='x'\nuser=2\n[[baseline]]\ngpu='0'\namount='2MiB'\n", *first);
  ASSERT_EQ(both->rules.size(), 2U);
  EXPECT_EQ(both->rules[0].name, "a");
  ASSERT_EQ(both->baselines.size(), 2U);
  EXPECT_EQ(both->baselines[0].gpu, "0") << "the later file is the more particular one";
  EXPECT_TRUE(parse("")->rules.empty());
}

TEST(ParsePolicy, MistakesAreNamedWithTheirLine) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"title = 'x'\n", "p.toml:1: the file: unknown key 'title'; there are rule, baseline, numbers"},
      {"\n[rules]\n", "p.toml:2: the file: unknown key 'rules'; did you mean 'rule'?"},
      {"[rule]\nname='a'\n", "p.toml:1: 'rule' is a list of tables: write [[rule]]"},
      {"rule = 3\n", "write [[rule]]"},
      {"rule = [1, {name='a'}]\n", "write [[rule]]"},
      {"numbers = 3\n", "write [numbers]"},
      {"[[rule]]\nwhy='x'\nuser=1\n", "p.toml:1: the rule: 'name' is missing"},
      {"[[rule]]\nname='a'\nuser=1\n", "rule 'a': 'why' is missing"},
      {"[[rule]]\nname='a'\nwhy='x'\n", "p.toml:1: rule 'a': it does not say whom it is for; give at least one of exe"},
      {"[[rule]]\nname='a'\nwhy='x'\nexec='/a'\nuser=1\n",
       "p.toml:4: rule 'a': unknown key 'exec'; did you mean 'exe'?"},
      {"[[rule]]\nname='a'\nwhy='x'\nexe=1\n", "p.toml:4: rule 'a': 'exe' is a number, and has to be a text"},
      {"[[rule]]\nname='a'\nwhy='x'\nexe=''\n", "'exe' has to be one line of 1 to 1024 bytes"},
      {"[[rule]]\nname=\"a\\nb\"\nwhy='x'\nuser=1\n", "'name' has to be one line"},
      {"[[rule]]\nname='a'\nwhy='x'\nexe='python3'\n", "begin it with / or *"},
      {"[[rule]]\nname='a'\nwhy='x'\ncgroup='system.slice'\n", "begin it with / or *"},
      {"[[rule]]\nname='a'\nwhy='x'\nunit='/system.slice/a'\n", "a path is for 'cgroup'"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser='bob'\n", "no user is called 'bob'"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=-1\n", "no user can have the number -1"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=4294967295\n", "no user can have the number"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=1.5\n", "'user' is a number, and has to be a name in quotes or a number"},
      {"[[rule]]\nname='a'\nwhy='x'\nrole='king'\n", "there is no role 'king'; there are context"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=1\naction='allow'\n",
       "there is no action 'allow'; there are protect, forbid"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=1\naction='term-only'\ngrace='5s'\n", "leave one out"},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=1\ngrace='5'\n", "p.toml:5: rule 'a': 'grace': "},
      {"[[rule]]\nname='a'\nwhy='x'\nuser=1\ngrace='2h'\n", "'grace' is 2h, and has to be between 1ms and 1h"},
      {"[[baseline]]\ngpu='x'\namount='1MiB'\n", "no GPU can be 'x'"},
      {"[[baseline]]\ngpu='*'\n", "'amount' is missing"},
      {"[[baseline]]\namount='1MiB'\n", "'gpu' is missing"},
      {"[[baseline]]\ngpu='0'\namount='1MB?'\n", "'amount': "},
      {"[[baseline]]\ngpu='0'\namount='17GiB'\n", "is 17GiB, and has to be between 0 and 16GiB"},
      {"[numbers]\nmemory_tolerance='0B'\n",
       "p.toml:2: numbers: 'memory_tolerance' is 0B, and has to be between 1MiB and 4GiB"},
      {"[numbers]\nheld_by_nobody_after='1s'\n", "between 10s and 1h"},
      {"[numbers]\nmax_rounds=3\n", "unknown key 'max_rounds'"},
      {"[[rule]\n", "p.toml:1: this is no TOML"},
      {"a = '\xff'\n", "p.toml:1: this is no TOML: the byte \\xff is no UTF-8"},
      {"\n\xc3\x9d = 1\n", "p.toml:2: this is no TOML: '\xc3\x9d' belongs into quotes or a comment"},
      {"\na = \xe2\x80\x9cx\xe2\x80\x9d\n", "p.toml:2: this is no TOML: '\xe2\x80\x9c' belongs into quotes"},
      {"a \xc3\x9d\n", "p.toml:1: this is no TOML: '\xc3\x9d' belongs into quotes"},
      {"a = 1\"\xc3\x9d\"\n", "p.toml:1: this is no TOML: "},
      {"a = \"\"\"\\\n\xc3\x9d\"\"\"\n", "p.toml:1: the file: unknown key 'a'"},
      {"'n\xc3\xa4me~' = 1\n", "p.toml:1: the file: unknown key 'n\xc3\xa4me~'"},
      {"'\xc3\x9d' = 1\n'\xc3\x9d' = 1\n", "p.toml:2: this is no TOML: "},
      {"a = '\\u007e41'\n", "p.toml:1: this is no TOML: an escape for ~"},
  };
  for (const auto& row : rows) {
    const auto policy = parse(row.text);
    ASSERT_FALSE(policy) << row.text;
    EXPECT_EQ(policy.error().code, ErrorCode::malformed);
    EXPECT_NE(policy.error().message.find(row.message), std::string::npos)
        << row.text << "\nsaid: " << policy.error().message;
    EXPECT_EQ(policy.error().message.find('\n'), std::string::npos) << "one line";
  }
}

TEST(ParsePolicy, LettersOfAnyLanguageStandInQuotesAndComments) {
  const auto policy = parse(
      "\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f\n[[rule]]\nname = 'n\xc3\xa4me'\n"
      "why = \"\xe2\x80\x9cx\xe2\x80\x9d ~7E \\u00e9\" # \xc3\x9d\nexe = '/~/\xf0\x9f\x92\xa9'\n");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->rules[0].name, "n\xc3\xa4me");
  EXPECT_EQ(policy->rules[0].detail, "\xe2\x80\x9cx\xe2\x80\x9d ~7E \xc3\xa9");
  EXPECT_EQ(policy->rules[0].exe, "/~/\xf0\x9f\x92\xa9");
  EXPECT_EQ(policy->rules[0].source, "p.toml:2");
}

// Each of these broke an assumption of the library below, which it makes without checking.
TEST(ParsePolicy, WhatALibraryTakesForGrantedIsRefused) {
  const std::pair<std::string, const char*> found[] = {
      {"[" + std::string(63, '\0') + "[rulctaorbid\"\n", "p.toml:1: this is no TOML: the control character \\x00"},
      {"[[= \"\"\nactio  = \"a\\u001b\"\n", "p.toml:1: this is no TOML: "},
      {"[[rule]]\neamn \xc3\x9d[[rule]]\nname = \"a\"\nwhy = \"b\"\nuser = 1000\n \"lor =ecnoetxt\"\n",
       "p.toml:2: this is no TOML: '\xc3\x9d' belongs into quotes or a comment"},
      {"[[rule]]\neamn \xc3\x9d[[rule]]\nactio = \"f\xe3rbi\"\n",
       "p.toml:3: this is no TOML: the byte \\xe3 is no UTF-8"},
  };
  for (const auto& [text, message] : found) {
    const auto policy = parse(text);
    ASSERT_FALSE(policy) << message;
    EXPECT_TRUE(policy.error().message.starts_with(message)) << policy.error().message;
  }
}

TEST(ParsePolicy, TheFirstMistakeOfTheFileIsNamed) {
  EXPECT_NE(parse("[numbers]\nx=1\n[[rule]]\ny=1\n").error().message.find("p.toml:2:"), std::string::npos);
  EXPECT_NE(parse("[[rule]]\ny=1\n[numbers]\nx=1\n").error().message.find("p.toml:1:"), std::string::npos);
}

TEST(ParsePolicy, RubbishIsRefusedAndEscaped) {
  const auto policy = parse("\"\x1b[31m\" = 1\n");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message.find('\x1b'), std::string::npos);
  EXPECT_FALSE(parse("[[rule]]\nname = \"a\\u001b[31m\"\nwhy = 'x'\nuser = 1\n"));
  EXPECT_FALSE(parse(std::string(2000, '[')));
  EXPECT_FALSE(parse(std::string("a = 1\0", 6)));
  std::mt19937 random(7);
  const std::string alphabet = "[]{}='\"\\\n.,abcrulenameo0123456789-#\x80\xff";
  for (int i = 0; i < 2000; ++i) {
    std::string text = "[[rule]]\n";
    for (int j = 0; j < 40; ++j) text += alphabet[random() % alphabet.size()];
    static_cast<void>(parse(text).has_value());
  }
}

}  // namespace
}  // namespace vacate
