// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help.h"
#include "cli/parse_options.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

RunOptions run_parsed(const Arguments& arguments) {
  const auto result = parse_run(arguments);
  const auto* options = std::get_if<Options>(&result);
  if (options == nullptr || !std::holds_alternative<RunOptions>(*options)) {
    ADD_FAILURE() << "not parsed as expected";
    return {};
  }
  return std::get<RunOptions>(*options);
}

std::string run_complaint(const Arguments& arguments) {
  const auto result = parse_run(arguments);
  const auto* error = std::get_if<UsageError>(&result);
  return error != nullptr ? error->message : "";
}

TEST(ParseRun, WhatFollowsTheDashesIsTheCommands) {
  EXPECT_THAT(run_parsed({"--", "true"}).request.argv, ElementsAre("true"));
  EXPECT_THAT(run_parsed({"--", "sh", "--json", "--", "-x", ""}).request.argv,
              ElementsAre("sh", "--json", "--", "-x", ""));
  EXPECT_EQ(run_parsed({"--", "sh", "--json"}).format, OutputFormat::text);
  EXPECT_THAT(run_parsed({"--", "--help"}).request.argv, ElementsAre("--help"));
}

TEST(ParseRun, TakesTheContractsOptions) {
  const auto options = run_parsed({"--grace", "30s", "--timeout=5min", "--json", "--quiet", "--", "true"});
  EXPECT_EQ(options.request.grace, std::chrono::seconds(30));
  EXPECT_EQ(options.request.check.timeout, std::chrono::minutes(5));
  EXPECT_EQ(options.format, OutputFormat::json);
  EXPECT_TRUE(options.quiet);
  const auto more = run_parsed({"--gpu", "0,1", "--gpu=2", "--keep-shm", "--lock", "--policy", "p.toml", "--", "true"});
  EXPECT_THAT(more.request.check.gpu_words, ElementsAre("0", "1", "2"));
  EXPECT_TRUE(more.request.check.keep_shm);
  EXPECT_TRUE(more.request.lock);
  EXPECT_FALSE(options.request.lock);
  EXPECT_EQ(more.policy_file, "p.toml");
  EXPECT_EQ(run_parsed({"--", "true"}).request.grace, std::chrono::seconds(10));
}

TEST(ParseRun, WhatIsWrongIsNamed) {
  EXPECT_THAT(run_complaint({}), HasSubstr("name a command"));
  EXPECT_THAT(run_complaint({"--"}), HasSubstr("name a command"));
  EXPECT_THAT(run_complaint({"--", ""}), HasSubstr("empty"));
  EXPECT_THAT(run_complaint({"python", "train.py"}), HasSubstr("vacate run -- python"));
  EXPECT_THAT(run_complaint({"--grace", "5s", "python"}), HasSubstr("vacate run -- python"));
  EXPECT_THAT(run_complaint({"surplus", "--", "true"}), HasSubstr("surplus"));
  EXPECT_THAT(run_complaint({"--grace", "5", "--", "true"}), HasSubstr("--grace"));
  EXPECT_THAT(run_complaint({"--grace", "--", "true"}), HasSubstr("--grace needs a time"));
  EXPECT_THAT(run_complaint({"--graze", "5s", "--", "true"}), HasSubstr("--grace"));
  EXPECT_THAT(run_complaint({"--gpu", "0,,1", "--", "true"}), HasSubstr("--gpu"));
  EXPECT_THAT(run_complaint({"--policy", "", "--", "true"}), HasSubstr("--policy"));
  EXPECT_THAT(run_complaint({"--yes", "--", "true"}), HasSubstr("--yes"));
}

TEST(ParseRun, HelpNamesEveryOption) {
  for (const auto& name : run_option_names()) EXPECT_THAT(run_help(), HasSubstr(name)) << name;
}

}  // namespace
}  // namespace vacate
