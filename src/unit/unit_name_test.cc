// SPDX-License-Identifier: Apache-2.0
#include "unit/unit_name.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;

TEST(UnitName, CompletesAndTakesApart) {
  EXPECT_EQ(parse_service_name("llm")->full(), "llm.service");
  EXPECT_EQ(parse_service_name("llm.service")->full(), "llm.service");
  EXPECT_EQ(parse_service_name("a\\x2db@x:1.service")->full(), "a\\x2db@x:1.service");
  EXPECT_EQ(parse_service_name("llm@0")->template_name(), "llm@.service");
  EXPECT_TRUE(parse_service_name("llm@")->is_template());
  EXPECT_EQ(parse_service_name("llm")->template_name(), std::nullopt);
}

TEST(UnitName, RefusesWhatNoUnitIsCalled) {
  for (const std::string word : {"", "@", "@x", ".service", "..", "../x", "a/b", "a b", "a%n", "$(id)", "a\nb", "a;b",
                                 "a\"b", "ä", "x.timer", "x.socket", "llm.slice"})
    EXPECT_FALSE(parse_service_name(word).has_value()) << word;
  EXPECT_FALSE(parse_service_name(std::string(256, 'a')).has_value());
}

// Every pair of these was measured with two files of one name on systemd 252.
TEST(UnitName, OrdersTheFoldersOfDropins) {
  EXPECT_THAT(dropin_folders(*parse_service_name("a-b-c@1")),
              ElementsAre("a-b-c@1.service.d", "a-b-c@.service.d", "a-b-.service.d", "a-.service.d", "a-b-@1.service.d",
                          "a-b-@.service.d", "a-@1.service.d", "a-@.service.d"));
  EXPECT_THAT(dropin_folders(*parse_service_name("a-b")), ElementsAre("a-b.service.d", "a-.service.d"));
  EXPECT_THAT(dropin_folders(*parse_service_name("llm")), ElementsAre("llm.service.d"));
  EXPECT_THAT(dropin_folders(*parse_service_name("---")), ElementsAre("---.service.d"));
}

}  // namespace
}  // namespace vacate
