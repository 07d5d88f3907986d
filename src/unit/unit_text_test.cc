// SPDX-License-Identifier: Apache-2.0
#include "unit/unit_text.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

UnitSettings parse(const std::string& text) { return UnitSettings::parse({{"/etc/a.service", text}}); }

std::vector<std::string> values(const UnitSettings& settings, std::string_view key) {
  std::vector<std::string> all;
  for (const auto* setting : settings.list("Service", key)) all.push_back(setting->value);
  return all;
}

TEST(UnitText, TakesSettingsWithTheirPlace) {
  const auto settings = parse("# a comment\n; another\n[Unit]\nDescription=x\n\n[Service]\n  Type = notify  \n");
  const auto* type = settings.last("Service", "Type");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->value, "notify");
  EXPECT_EQ(type->file, "/etc/a.service");
  EXPECT_EQ(type->line, 7U);
  EXPECT_EQ(settings.last("Unit", "Type"), nullptr);
  EXPECT_THAT(settings.flaws(), IsEmpty());
}

TEST(UnitText, JoinsLinesThatGoOnAndSkipsCommentsBetweenThem) {
  const auto settings = parse("[Service]\nExecStart=/bin/a \\\n  # no end of it\n   b\\\n\nExecStop=/bin/c\\\\\n");
  EXPECT_THAT(values(settings, "ExecStart"), ElementsAre("/bin/a  b"));
  EXPECT_EQ(settings.last("Service", "ExecStart")->line, 2U);
  EXPECT_THAT(values(settings, "ExecStop"), ElementsAre("/bin/c\\\\"));  // an escaped backslash ends the line
}

TEST(UnitText, ForgetsWhatWasBeforeAnEmptyValue) {
  const auto settings = UnitSettings::parse(
      {{"/usr/lib/a.service", "[Service]\nExecStartPre=/bin/old\nKillMode=none\n"},
       {"/etc/a.service.d/x.conf", "[Service]\nExecStartPre=\nExecStartPre=/bin/new\nKillMode=\n"}});
  EXPECT_THAT(values(settings, "ExecStartPre"), ElementsAre("/bin/new"));
  EXPECT_EQ(settings.last("Service", "KillMode"), nullptr);
  EXPECT_EQ(settings.list("Service", "ExecStartPre").front()->file, "/etc/a.service.d/x.conf");
}

TEST(UnitText, EachFileBeginsWithoutASection) {
  const auto settings = UnitSettings::parse({{"a", "[Service]\n"}, {"b", "Type=exec\n"}});
  EXPECT_EQ(settings.last("Service", "Type"), nullptr);
  ASSERT_THAT(settings.flaws(), SizeIs(1));
  EXPECT_EQ(settings.flaws().front().file, "b");
}

TEST(UnitText, TellsWhatSystemdIgnores) {
  for (const auto& [text, wanted] :
       std::vector<std::pair<std::string, std::string>>{{"[Service]\nnonsense\n", "no '='"},
                                                        {"[Service]\n=x\n", "before the '='"},
                                                        {"Type=x\n", "before any [Section]"},
                                                        {"[Service\n", "does not end with ]"},
                                                        {std::string("[Service]\nType=a\0b\n", 19), "NUL"},
                                                        {"[Service]\n\x1b[31m\n", "\\x1b"}}) {
    const auto settings = parse(text);
    ASSERT_THAT(settings.flaws(), SizeIs(1)) << text;
    EXPECT_THAT(settings.flaws().front().what, HasSubstr(wanted));
  }
}

TEST(UnitText, EndsInTheMiddleOfAnything) {
  EXPECT_THAT(values(parse("[Service]\nExecStart=/bin/a \\"), "ExecStart"), ElementsAre("/bin/a"));
  EXPECT_THAT(parse("\xEF\xBB\xBF[Service]\r\nType=exec\r\n").flaws(), IsEmpty());
  EXPECT_THAT(parse(std::string(100000, '\\')).all(), IsEmpty());
  EXPECT_THAT(parse(std::string(5000, 'x') + "\n").flaws(), SizeIs(1));
}

}  // namespace
}  // namespace vacate
