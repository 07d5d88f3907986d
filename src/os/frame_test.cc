// SPDX-License-Identifier: Apache-2.0
#include "os/frame.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

TEST(Frame, RoundTrips) {
  FrameWriter out;
  out.number(std::uint8_t{7});
  out.number(std::int64_t{-3});
  out.text("abc");
  FrameReader in(out.bytes());
  EXPECT_EQ(in.number<std::uint8_t>(), 7);
  EXPECT_EQ(in.number<std::int64_t>(), -3);
  EXPECT_EQ(in.text(), "abc");
  EXPECT_TRUE(in.complete());
}

TEST(Frame, EveryCutIsNoticed) {
  FrameWriter out;
  out.number(std::uint32_t{7});
  out.text("abc");
  for (std::size_t length = 0; length < out.bytes().size(); ++length) {
    FrameReader in(std::string_view(out.bytes()).substr(0, length));
    (void)in.number<std::uint32_t>();
    (void)in.text();
    EXPECT_FALSE(in.complete()) << length;
    EXPECT_EQ(in.number<std::uint32_t>(), 0U);
  }
}

TEST(Frame, CountsThatCannotBeTrueFail) {
  FrameWriter out;
  out.number(std::uint32_t{0xFFFFFFFF});
  FrameReader in(out.bytes());
  EXPECT_EQ(in.count(8), 0U);
  EXPECT_TRUE(in.failed());
}

TEST(FrameStream, GivesWholeFramesOnly) {
  FrameWriter first;
  first.text("one");
  FrameWriter second;
  second.text("");
  const std::string bytes = first.bytes() + second.bytes() + first.bytes();
  FrameStream stream(16);
  std::vector<std::string> got;
  for (const char byte : bytes) {
    stream.feed({&byte, 1});
    while (auto payload = stream.next()) got.push_back(*payload);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"one", "", "one"}));
}

TEST(FrameStream, RefusesALengthBeyondTheLargest) {
  FrameStream stream(4);
  FrameWriter out;
  out.text("12345");
  stream.feed(out.bytes());
  EXPECT_FALSE(stream.next());
  EXPECT_TRUE(stream.malformed());
}

}  // namespace
}  // namespace vacate
