// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_shm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/parse_options.h"

namespace vacate {
namespace {

using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

ShmOptions shm_parsed(const Arguments& arguments) {
  const auto result = parse_shm(arguments);
  const auto* options = std::get_if<Options>(&result);
  if (options == nullptr || !std::holds_alternative<ShmOptions>(*options)) {
    ADD_FAILURE() << "not parsed as expected";
    return {};
  }
  return std::get<ShmOptions>(*options);
}

std::string shm_complaint(const Arguments& arguments) {
  const auto result = parse_shm(arguments);
  const auto* error = std::get_if<UsageError>(&result);
  return error != nullptr ? error->message : "";
}

TEST(ParseShm, ListsUnlessToldToClean) {
  EXPECT_FALSE(shm_parsed({}).clean);
  EXPECT_FALSE(shm_parsed({"--json"}).clean);
  EXPECT_FALSE(shm_parsed({"list", "--path", "/run/shm"}).clean);
  EXPECT_TRUE(shm_parsed({"clean"}).clean);
  EXPECT_EQ(shm_parsed({"clean"}).request.older_than, std::chrono::minutes(10));
}

TEST(ParseShm, CleanTakesTheContractsOptions) {
  const auto options = shm_parsed({"clean", "--yes", "--older-than", "1h", "--family", "nccl,python", "--sysv",
                                   "--assume-private", "--path", "/a", "--path", "/b", "--json"});
  EXPECT_EQ(options.mode, Mode::yes);
  EXPECT_EQ(options.request.older_than, std::chrono::hours(1));
  EXPECT_EQ(options.request.families, (Arguments{"nccl", "python"}));
  EXPECT_EQ(options.request.paths, (Arguments{"/a", "/b"}));
  EXPECT_TRUE(options.request.sysv && options.request.assume_private);
  EXPECT_EQ(shm_parsed({"clean", "--older-than", "0"}).request.older_than, std::chrono::seconds(0));
}

TEST(ParseShm, WhatIsWrongIsNamed) {
  EXPECT_THAT(shm_complaint({"claen"}), HasSubstr("did you mean 'clean'"));
  EXPECT_THAT(shm_complaint({"clean", "--family", "pyhton"}), HasSubstr("did you mean 'python'"));
  EXPECT_THAT(shm_complaint({"clean", "--family", ""}), HasSubstr("--family"));
  EXPECT_THAT(shm_complaint({"clean", "--yes", "--dry-run"}), HasSubstr("contradict"));
  EXPECT_THAT(shm_complaint({"clean", "--older-than", "10"}), HasSubstr("--older-than"));
  EXPECT_THAT(shm_complaint({"list", "--yes"}), HasSubstr("--yes"));
  EXPECT_THAT(shm_complaint({"--path", "relative"}), HasSubstr("relative"));
  EXPECT_THAT(shm_complaint({"list", "surplus"}), HasSubstr("surplus"));
}

TEST(ParseShm, TheHelpNamesEveryOptionWithin80Columns) {
  const std::string help(shm_help());
  for (const auto& name : shm_option_names()) EXPECT_THAT(help, HasSubstr(name));
  for (const auto line : split(help, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace vacate
