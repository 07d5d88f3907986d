// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <string>

#include <gtest/gtest.h>

namespace vacate {
namespace {

TEST(Pattern, Table) {
  struct Row {
    const char* pattern;
    const char* text;
    bool matches;
  };
  const Row rows[] = {
      {"/usr/bin/x", "/usr/bin/x", true},
      {"/usr/bin/x", "/usr/bin/xy", false},
      {"/usr/bin/x", "/usr/bin/", false},
      {"/opt/*", "/opt/a/b", true},
      {"/opt/*", "/opt/", true},
      {"/opt/*", "/opt", false},
      {"*.service", "llm.service", true},
      {"*.service", "llm.service.d", false},
      {"llm@?.service", "llm@3.service", true},
      {"llm@?.service", "llm@.service", false},
      {"a*b*c", "aXbYbZc", true},
      {"a*b*c", "aXbYbZ", false},
      {"**", "", true},
      {"", "", true},
      {"", "a", false},
      {"?", "", false},
      {"[a]", "a", false},
  };
  for (const auto& row : rows)
    EXPECT_EQ(matches_pattern(row.pattern, row.text), row.matches) << row.pattern << " and " << row.text;
}

TEST(Pattern, ManyStarsEndInTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(4000, 'a')));
  EXPECT_TRUE(matches_pattern(pattern, std::string(4000, 'a')));
}

}  // namespace
}  // namespace vacate
