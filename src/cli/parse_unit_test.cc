// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_unit.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "cli/help.h"
#include "cli/parse_options.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using UnitArguments = std::vector<std::string>;

std::string complaint_about(UnitArguments words) {
  words.insert(words.begin(), "unit");
  const auto parsed = parse_options(words);
  const auto* error = std::get_if<UsageError>(&parsed);
  return error != nullptr ? error->message : "";
}

TEST(ParseUnit, TakesTheTwoCommands) {
  const auto lint = std::get<UnitLintOptions>(std::get<Options>(parse_unit({"lint", "llm", "--json"})));
  EXPECT_EQ(lint.subject, "llm");
  EXPECT_EQ(lint.format, OutputFormat::json);
  const auto dropin = std::get<UnitDropinOptions>(
      std::get<Options>(parse_unit({"dropin", "llm", "--gpu", "0,1", "--timeout", "1h", "--install"})));
  EXPECT_EQ(dropin.unit, "llm");
  EXPECT_THAT(dropin.gpus, ElementsAre("0", "1"));
  EXPECT_EQ(dropin.wait, std::chrono::hours(1));
  EXPECT_TRUE(dropin.install);
}

TEST(ParseUnit, SaysWhatIsMissingOrWrong) {
  EXPECT_THAT(complaint_about({}), HasSubstr("say lint or dropin"));
  EXPECT_THAT(complaint_about({"--json"}), HasSubstr("say lint or dropin"));
  EXPECT_THAT(complaint_about({"lnt", "llm"}), HasSubstr("did you mean 'lint'"));
  EXPECT_THAT(complaint_about({"lint"}), HasSubstr("name a unit"));
  EXPECT_THAT(complaint_about({"lint", "a", "b"}), HasSubstr("unexpected argument 'b'"));
  EXPECT_THAT(complaint_about({"lint", "a", "--install"}), HasSubstr("--install"));
  EXPECT_THAT(complaint_about({"dropin", "--gpu", "0"}), HasSubstr("name a service"));
  EXPECT_THAT(complaint_about({"dropin", "llm"}), HasSubstr("--gpu 0,1"));
  EXPECT_THAT(complaint_about({"dropin", "llm", "--gpu", "0,,1"}), HasSubstr("empty word"));
  EXPECT_THAT(complaint_about({"dropin", "llm", "--gpu", "0", "--timeout", "5"}), HasSubstr("--timeout"));
}

TEST(ParseUnit, HelpNamesEveryOptionAndKeepsTo80Columns) {
  for (const auto& name : unit_option_names()) EXPECT_THAT(std::string(unit_help()), HasSubstr(name));
  for (const auto line : split(unit_help(), '\n')) {
    EXPECT_LE(line.size(), 80U) << line;
    EXPECT_FALSE(line.ends_with('.')) << line;
  }
}

}  // namespace
}  // namespace vacate
