// SPDX-License-Identifier: Apache-2.0
#include "unit/command_line.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> words(std::string_view line) {
  const auto parsed = parse_command_line(line);
  return parsed.commands.empty() ? std::vector<std::string>() : parsed.commands.front().words;
}

TEST(CommandLine, TakesQuotesAndEscapesApart) {
  EXPECT_THAT(words("/bin/a b  c"), ElementsAre("/bin/a", "b", "c"));
  EXPECT_THAT(words("/bin/sh -c 'a \"b\" $c'"), ElementsAre("/bin/sh", "-c", "a \"b\" $c"));
  EXPECT_THAT(words("/bin/a x\"y z\"w"), ElementsAre("/bin/a", "xy zw"));
  EXPECT_THAT(words("/bin/a \"\""), ElementsAre("/bin/a", ""));
  EXPECT_THAT(words(R"(/bin/a \x24SP a\tb a\\x2db \q)"), ElementsAre("/bin/a", "$SP", "a\tb", "a\\x2db", "\\q"));
}

TEST(CommandLine, KnowsTheSignsBeforeTheProgram) {
  const auto command = parse_command_line("-+:/bin/a").commands.front();
  EXPECT_TRUE(command.ignores_failure);
  EXPECT_TRUE(command.has_all_rights);
  EXPECT_TRUE(command.keeps_variables);
  EXPECT_EQ(command.program(), "a");
  EXPECT_TRUE(parse_command_line("!!/bin/a").commands.front().is_of_root);
  EXPECT_THAT(words("@/bin/a name b"), ElementsAre("/bin/a", "b"));
}

TEST(CommandLine, SeparatesCommandsAtALoneSemicolon) {
  const auto parsed = parse_command_line("/bin/a b ; -/bin/c d; \\; e");
  ASSERT_THAT(parsed.commands, SizeIs(2));
  EXPECT_THAT(parsed.commands[0].words, ElementsAre("/bin/a", "b"));
  EXPECT_THAT(parsed.commands[1].words, ElementsAre("/bin/c", "d;", ";", "e"));
}

TEST(CommandLine, RefusesWhatSystemdRefuses) {
  EXPECT_TRUE(parse_command_line("/bin/a 'b").flaw.has_value());
  EXPECT_TRUE(parse_command_line("-").flaw.has_value());
  EXPECT_THAT(parse_command_line(" ").commands, IsEmpty());
  EXPECT_FALSE(parse_command_line("/bin/a \\").flaw.has_value());
}

}  // namespace
}  // namespace vacate
