// SPDX-License-Identifier: Apache-2.0
#include "lab/runner/json_match.h"

#include <gmock/gmock.h>

namespace lab {
namespace {

using ::testing::HasSubstr;

const Json kOutput = *parse_json(R"({
  "verdict": "released", "exit": 0, "nothing": null, "seconds": 3.75, "a/b": {"~": 1},
  "gpus": [{"index": 3, "used": 101302927360, "verdict": "in-use"}, {"index": 1, "verdict": "released"}],
  "holders": [{"pid": 12, "standing": "leftover", "because": ["its parent is dead", "pipe 7 is broken"]},
              {"pid": 123, "standing": "live", "protected": true}],
  "segments": [{"name": "psm_0a1b=2", "verdict": "unused"}, "odd one out"]
})");

std::string found(std::string_view pointer) {
  const auto value = find_json(kOutput, pointer);
  return value ? (*value)->dump() : "none: " + value.error().message;
}

TEST(FindJson, FollowsPointersAndSelectors) {
  EXPECT_EQ(found("/verdict"), "\"released\"");
  EXPECT_EQ(found("/gpus/1/index"), "1");
  EXPECT_EQ(found("/gpus/index=1/verdict"), "\"released\"");
  EXPECT_EQ(found("/holders/pid=12/standing"), "\"leftover\"");
  EXPECT_EQ(found("/holders/protected=true/pid"), "123");
  EXPECT_EQ(found("/segments/name=psm_0a1b=2/verdict"), "\"unused\"");
  EXPECT_EQ(found("/a~1b/~0"), "1");
  EXPECT_EQ(found("").substr(0, 10), "{\"verdict\"");
}

TEST(FindJson, SaysWhatIsNotThere) {
  EXPECT_THAT(found("/verdicts"), HasSubstr("no 'verdicts' in {"));
  EXPECT_THAT(found("/gpus/2"), HasSubstr("no '2' in ["));
  EXPECT_THAT(found("/gpus/01"), HasSubstr("no '01'"));
  EXPECT_THAT(found("/gpus/-"), HasSubstr("no '-'"));
  EXPECT_THAT(found("/holders/pid=1/standing"), HasSubstr("no 'pid=1'"));
  EXPECT_THAT(found("/verdict/x"), HasSubstr("no 'x' in \"released\""));
  EXPECT_THAT(found("verdict"), HasSubstr("does not begin with '/'"));
}

using Wanted = decltype(JsonExpectation::wanted);

std::string difference(const std::string& pointer, Wanted wanted) {
  return json_difference(kOutput, {pointer, std::move(wanted), {}}).value_or("");
}

TEST(JsonDifference, AcceptsWhatIsExpected) {
  EXPECT_EQ(difference("/verdict", expect::Equal{{"\"released\""}}), "");
  EXPECT_EQ(difference("/exit", expect::Equal{{"0"}}), "");
  EXPECT_EQ(difference("/exit", expect::Equal{{"0.0"}}), "");
  EXPECT_EQ(difference("/holders/0/pid", expect::Equal{{"\"12\""}}), "");
  EXPECT_EQ(difference("/holders/0/because", expect::Equal{{R"(["its parent is dead","pipe 7 is broken"])"}}), "");
  EXPECT_EQ(difference("/exit", expect::Present{}), "");
  EXPECT_EQ(difference("/gpus/0/used", expect::MibOf{96610}), "");
  EXPECT_EQ(difference("/seconds", expect::Between{3.5, 10}), "");
  EXPECT_EQ(difference("/seconds", expect::Between{{}, 3.75}), "");
  EXPECT_EQ(difference("/holders/0/because", expect::Contains{"is broken"}), "");
  EXPECT_EQ(difference("/verdict", expect::Contains{"lease"}), "");
  EXPECT_EQ(difference("/holders", expect::Length{2}), "");
  EXPECT_EQ(difference("/gpus/1", expect::Length{2}), "");
}

TEST(JsonDifference, SaysWhatWasExpectedAndFound) {
  EXPECT_EQ(difference("/verdict", expect::Equal{{"\"refused\""}}),
            "/verdict: expected \"refused\", found \"released\"");
  EXPECT_EQ(difference("/exit", expect::Equal{{"\"released\""}}), "/exit: expected \"released\", found 0");
  EXPECT_EQ(difference("/seconds", expect::Equal{{"\"3.75\""}}), "/seconds: expected \"3.75\", found 3.75");
  EXPECT_EQ(difference("/nothing", expect::Present{}), "/nothing: expected something that is not null, found null");
  EXPECT_EQ(difference("/exit", expect::MibOf{1}), "/exit: expected 1048576 (1 MiB), found 0");
  EXPECT_EQ(difference("/seconds", expect::Between{4, {}}), "/seconds: expected a number, at least 4, found 3.75");
  EXPECT_EQ(difference("/verdict", expect::Between{0, 1}),
            "/verdict: expected a number, at least 0, at most 1, found \"released\"");
  EXPECT_EQ(difference("/verdict", expect::Contains{"x"}),
            "/verdict: expected something with \"x\", found \"released\"");
  EXPECT_THAT(difference("/gpus", expect::Length{3}), HasSubstr("/gpus: expected length 3 instead of 2, found ["));
  EXPECT_EQ(difference("/exit", expect::Length{0}), "/exit: expected length 0, found 0");
  EXPECT_THAT(difference("/verdictt", expect::Equal{{"1"}}),
              HasSubstr("/verdictt: expected 1, found no 'verdictt' in {"));
  EXPECT_THAT(difference("/verdictt", expect::Length{0}), HasSubstr("found no 'verdictt' in {"));
  EXPECT_THAT(difference("/verdictt", expect::Present{}), HasSubstr("expected something that is not null, found no"));
}

TEST(ParseJson, TakesExactlyOneValue) {
  EXPECT_TRUE(parse_json("{}\n"));
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json("{} {}"));
  EXPECT_FALSE(parse_json("GPU 0"));
}

}  // namespace
}  // namespace lab
