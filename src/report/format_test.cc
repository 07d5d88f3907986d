// SPDX-License-Identifier: Apache-2.0
#include "report/format.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace vacate {
namespace {

TEST(Format, FiguresAreGroupedInThousands) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(96619), "96,619");
  EXPECT_EQ(with_thousands(1234567), "1,234,567");
  EXPECT_EQ(format_mib(mebibytes(96619)), "96,619 MiB");
  EXPECT_EQ(format_mib(Reading<Bytes>(Unknown::not_supported)), "unknown (not supported)");
}

TEST(Format, AgesAreShort) {
  const struct {
    double seconds;
    const char* text;
  } kTable[] = {{0, "0s"},       {59.9, "59s"},     {60, "1min"},   {3599, "59min"}, {3600, "1h00"},
                {11100, "3h05"}, {172799, "47h59"}, {172800, "2d"}, {-1, "?"}};
  for (const auto& row : kTable) EXPECT_EQ(format_age(row.seconds), row.text) << row.seconds;
}

TEST(Format, TimesAreRfc3339) {
  EXPECT_EQ(format_rfc3339(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_rfc3339(1709210096.5), "2024-02-29T12:34:56.500Z");
  EXPECT_EQ(format_rfc3339(1e30), format_rfc3339(2.5e11));
}

TEST(Format, RangesJoinNeighbours) {
  EXPECT_EQ(format_ranges({}), "");
  EXPECT_EQ(format_ranges({3}), "3");
  EXPECT_EQ(format_ranges({0, 1}), "0,1");
  EXPECT_EQ(format_ranges({0, 1, 2, 5, 7, 8, 9}), "0-2,5,7-9");
}

TEST(Format, WrapKeepsWithinTheWidth) {
  const std::string text =
      wrap("a sentence of several words and averyveryveryverylongwordthatfitsnowhere at all", 4, 30);
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 30U) << line;
  EXPECT_TRUE(text.starts_with("    a sentence"));
}

TEST(Format, ElideEndCutsWideCharactersWhole) {
  EXPECT_EQ(elide_end("short", 10), "short");
  EXPECT_EQ(elide_end("something long", 9), "someth...");
  EXPECT_EQ(elide_end("日本語日本語", 8), "日本...");
}

TEST(Format, ColourOnlyWhereAsked) {
  EXPECT_EQ(painted("x", Paint::bad, {80, Colour::no}), "x");
  EXPECT_EQ(painted("x", Paint::bad, {80, Colour::yes}), "\x1b[31mx\x1b[0m");
}

TEST(Format, TerminalsHaveTheNamesThatPsShows) {
  EXPECT_EQ(format_tty((136U << 8U) | 3U), "pts/3");
  EXPECT_EQ(format_tty((137U << 8U) | 1U), "pts/257");
  EXPECT_EQ(format_tty((136U << 8U) | (1U << 20U)), "pts/256");
  EXPECT_EQ(format_tty((4U << 8U) | 1U), "tty1");
  EXPECT_EQ(format_tty((4U << 8U) | 64U), "ttyS0");
  EXPECT_EQ(format_tty((204U << 8U) | 64U), "204:64");
}

}  // namespace
}  // namespace vacate
