// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/parse_options.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WaitOptions parsed(Arguments arguments) {
  arguments.insert(arguments.begin(), "wait");
  const auto result = parse_options(arguments);
  const auto* options = std::get_if<Options>(&result);
  if (options == nullptr || !std::holds_alternative<WaitOptions>(*options)) {
    ADD_FAILURE() << "not parsed: " << arguments.back();
    return {};
  }
  return std::get<WaitOptions>(*options);
}

TEST(ParseWait, Defaults) {
  const auto options = parsed({});
  EXPECT_EQ(options.request.condition, WaitCondition{});
  EXPECT_EQ(options.request.hold, 1s);
  EXPECT_EQ(options.request.timeout, 5min);
  EXPECT_THAT(options.words.gpus, IsEmpty());
  EXPECT_FALSE(options.reap || options.lock || options.quiet);
}

TEST(ParseWait, EverythingReachesTheRequest) {
  const auto options = parsed({"--gpu",
                               "0,1",
                               "--free",
                               "50%",
                               "--for",
                               "5s",
                               "--timeout",
                               "0",
                               "--ignore-pid",
                               "7,9@11",
                               "--ignore-unit",
                               "llm",
                               "--unit=a.service",
                               "--user",
                               "alice",
                               "--reap",
                               "--lock",
                               "--quiet",
                               "--json",
                               "--policy",
                               "p.toml"});
  EXPECT_EQ(options.request.condition, (WaitCondition{ConditionKind::free, {{}, 50U}}));
  EXPECT_EQ(options.request.hold, 5s);
  EXPECT_EQ(options.request.timeout, 0s);
  EXPECT_THAT(options.request.ignored_pids, ElementsAre(ProcessSelector{7, {}}, ProcessSelector{9, 11}));
  EXPECT_THAT(options.request.ignored_units, ElementsAre("llm.service"));
  EXPECT_THAT(options.request.selection.units, ElementsAre("a.service"));
  EXPECT_THAT(options.words.gpus, ElementsAre("0", "1"));
  EXPECT_THAT(options.words.users, ElementsAre("alice"));
  EXPECT_TRUE(options.reap && options.lock && options.quiet);
  EXPECT_EQ(options.format, OutputFormat::json);
  EXPECT_EQ(options.policy_file, "p.toml");
  EXPECT_EQ(parsed({"--used-below", "8GiB"}).request.condition,
            (WaitCondition{ConditionKind::used_below, {gibibytes(8), {}}}));
}

TEST(ParseWait, MistakesAreNamed) {
  struct Row {
    Arguments arguments;
    std::string_view says;
  };
  const std::vector<Row> rows = {
      {{"--idle", "--free", "1GiB"}, "ask one"},
      {{"--free", "1GiB", "--used-below", "1GiB"}, "ask one"},
      {{"--free", "50"}, "--free: '50' is neither a size nor a share"},
      {{"--free", "101%"}, "--free: '101%'"},
      {{"--used-below", "-1%"}, "--used-below: '-1%'"},
      {{"--used-below", "0%"}, "never in use"},
      {{"--free", "0B"}, "always free"},
      {{"--used-below"}, "--used-below needs a size or a share"},
      {{"--for", "10"}, "--for: '10'"},
      {{"--for", "10s", "--timeout", "5s"}, "--for is longer than --timeout"},
      {{"--reap", "--pid", "7"}, "'vacate free'"},
      {{"--ignore-pid", "x"}, "--ignore-pid: 'x'"},
      {{"--ignore-pid", "7,"}, "--ignore-pid: an empty word"},
      {{"--ignore-unit", "a*"}, "--ignore-unit: 'a*'"},
      {{"--ignore-units", "a"}, "did you mean '--ignore-unit'?"},
      {{"--grace", "5s"}, "unknown option '--grace'"},
      {{"now"}, "unexpected argument 'now'"},
  };
  for (auto row : rows) {
    row.arguments.insert(row.arguments.begin(), "wait");
    const auto result = parse_options(row.arguments);
    const auto* error = std::get_if<UsageError>(&result);
    ASSERT_NE(error, nullptr) << row.says;
    EXPECT_THAT(error->message, HasSubstr(row.says));
    EXPECT_EQ(error->try_command, "vacate wait --help");
  }
}

}  // namespace
}  // namespace vacate
