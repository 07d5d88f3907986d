// SPDX-License-Identifier: Apache-2.0
#include "config/ascii_text.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace vacate {
namespace {

TEST(AsciiText, GoesThereAndBack) {
  EXPECT_EQ(to_ascii("a\xc3\x9d~b\n"), "a~C3~9D~7Eb\n");
  EXPECT_EQ(from_ascii("a~C3~9D~7Eb\n"), "a\xc3\x9d~b\n");
  EXPECT_EQ(from_ascii(to_ascii("~7E")), "~7E");
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int j = 0; j < 20; ++j) text += static_cast<char>(random() % 4 == 0 ? '~' : random() % 256);
    const auto ascii = to_ascii(text);
    EXPECT_TRUE(std::all_of(ascii.begin(), ascii.end(), [](unsigned char c) { return c < 0x80; }));
    EXPECT_EQ(std::count(ascii.begin(), ascii.end(), '\n'), std::count(text.begin(), text.end(), '\n'));
    EXPECT_EQ(from_ascii(ascii), text);
  }
}

TEST(AsciiText, PartsOfAMarkStay) {
  for (const auto* text : {"~", "~~", "~C", "~41", "~c3", "~G0", "saw '~'"}) EXPECT_EQ(from_ascii(text), text);
}

std::string deep_key(std::size_t parts) {
  std::string key = "a";
  for (std::size_t i = 1; i < parts; ++i) key += ".a";
  return key;
}

TEST(AsciiText, NamesTheFirstUnfitLine) {
  struct Row {
    std::string text;
    std::uint32_t number;
    const char* why;
  };
  const Row rows[] = {
      {"a\n\nb\x01", 3, "the control character \\x01"},
      {std::string("\0", 1), 1, "the control character \\x00"},
      {"\x7f\n", 1, "the control character \\x7f"},
      {"a\rb\n", 1, "the control character \\x0d"},
      {"\r\n\v", 2, "the control character \\x0b"},
      {"# \xff\n", 1, "the byte \\xff is no UTF-8"},
      {"a\n\xc3", 2, "the byte \\xc3 is no UTF-8"},
      {"\xed\xa0\x80", 1, "the byte \\xed is no UTF-8"},
      {"\xc0\x80", 1, "the byte \\xc0 is no UTF-8"},
      {"a = 1\n" + deep_key(250000) + " = 1\n", 2, "it is longer than 4096 bytes"},
      {"\n\"\\u007E41\"", 2, "an escape for ~; write ~ itself"},
      {"\"\\U0000007eFF\"", 1, "an escape for ~; write ~ itself"},
  };
  for (const auto& row : rows) {
    const auto line = first_unfit_line(row.text);
    ASSERT_TRUE(line) << row.why;
    EXPECT_EQ(line->number, row.number) << row.why;
    EXPECT_EQ(line->why, row.why);
  }
  EXPECT_FALSE(first_unfit_line(""));
  EXPECT_FALSE(first_unfit_line("a\tb\r\n\xc3\x9d \xe2\x80\x9c ~ \\u00e9 \\n\n"));
}

}  // namespace
}  // namespace vacate
