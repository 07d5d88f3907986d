// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

// What would leave views into a string that is gone does not compile.
template <class Text>
concept CanBeCut = requires(Text&& text) {
  split(std::forward<Text>(text), ' ');
  trim(std::forward<Text>(text));
};
static_assert(CanBeCut<std::string&> && CanBeCut<const std::string&> && CanBeCut<std::string_view> &&
              CanBeCut<const char*>);
static_assert(!CanBeCut<std::string>);

TEST(ParseDuration, AcceptsTheUnitsOfTheCommandLine) {
  using std::chrono::milliseconds;
  EXPECT_EQ(*parse_duration("10s"), milliseconds(10'000));
  EXPECT_EQ(*parse_duration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(*parse_duration("200ms"), milliseconds(200));
  EXPECT_EQ(*parse_duration("5min"), milliseconds(300'000));
  EXPECT_EQ(*parse_duration("1h"), milliseconds(3'600'000));
  EXPECT_EQ(*parse_duration("0"), milliseconds(0));
}

TEST(ParseDuration, RefusesEverythingElse) {
  for (const char* text : {"", "10", "s", "-1s", "+1s", "1e3s", "nan", "infs", "1s ", " 1s", "1 s", "1..5s", "10m",
                           "1d", "99999999999999h"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(ParseSize, KnowsBinaryUnitsOnly) {
  EXPECT_EQ(parse_size("90GiB")->count, 90ULL << 30U);
  EXPECT_EQ(parse_size("512MiB")->count, 512ULL << 20U);
  for (const char* text : {"", "90", "90GB", "90G", "-1MiB", "1e30TiB", "9999999999TiB"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(ParseNumbers, RefuseSignsSpacesAndOverflow) {
  EXPECT_EQ(parse_unsigned("18446744073709551615"), 18446744073709551615ULL);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616"})
    EXPECT_FALSE(parse_unsigned(text)) << text;
  EXPECT_EQ(parse_signed("-7"), -7);
  EXPECT_EQ(parse_hex("ff"), 255U);
}

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("VLLM::Worker_TP0"), "VLLM::Worker_TP0");
  EXPECT_EQ(printable("héllo 世界"), "héllo 世界");
  EXPECT_EQ(printable("back\\slash"), "back\\slash");
}

TEST(Printable, DisarmsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nb\tc\x1b[31m"), "a\\x0ab\\x09c\\x1b[31m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "evil"),
            "\\u{202e}evil");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{009b}31m");
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Printable, CutsWithinALimitAndNeverInsideACharacter) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("世界", 4), "世...");
}

TEST(ElideMiddle, KeepsBothEnds) {
  EXPECT_EQ(elide_middle("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(elide_middle("abcdefghij", 9), "abc...hij");
  EXPECT_EQ(elide_middle("abcdefghij", 3), "...");
  EXPECT_EQ(display_width(elide_middle("世界世界世界", 8)), 7U);
}

TEST(ClosestMatch, SuggestsOnlyASlip) {
  const std::vector<std::string> commands = {"status", "free", "wait"};
  EXPECT_EQ(closest_match("statsu", commands), "status");
  EXPECT_EQ(closest_match("fre", commands), "free");
  EXPECT_EQ(closest_match("explode", commands), std::nullopt);
}

}  // namespace
}  // namespace vacate
