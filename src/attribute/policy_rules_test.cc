// SPDX-License-Identifier: Apache-2.0
#include "attribute/policy_rules.h"

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using std::chrono::milliseconds;

PolicyRule rule_for(std::string name) {
  PolicyRule rule;
  rule.name = std::move(name);
  rule.detail = "because";
  rule.source = "p.toml:3";
  return rule;
}

Process server() {
  Process process;
  process.key.pid = 4000;
  process.exe = std::string("/opt/serve/bin/engine");
  process.uid = 1000;
  process.cgroup = "/system.slice/llm.service/worker";
  return process;
}

bool fits(const PolicyRule& rule, const Process& process, std::optional<HolderRole> role = HolderRole::context) {
  Policy policy;
  policy.rules = {rule};
  return with_policy(std::nullopt, process, role, policy).has_value();
}

TEST(PolicyRules, EverythingStatedHasToFit) {
  auto rule = rule_for("r");
  rule.exe = "/opt/serve/*";
  EXPECT_TRUE(fits(rule, server()));
  rule.uid = 1000;
  EXPECT_TRUE(fits(rule, server()));
  rule.unit = "llm.service";
  EXPECT_TRUE(fits(rule, server()));
  rule.cgroup = "/system.slice/*";
  EXPECT_TRUE(fits(rule, server()));
  rule.role = "context";
  EXPECT_TRUE(fits(rule, server()));
  EXPECT_FALSE(fits(rule, server(), HolderRole::files));
  EXPECT_FALSE(fits(rule, server(), std::nullopt)) << "a relative has no role";
  auto wrong = rule;
  wrong.exe = "/opt/serve";
  EXPECT_FALSE(fits(wrong, server()));
  wrong = rule;
  wrong.uid = 1001;
  EXPECT_FALSE(fits(wrong, server()));
  wrong = rule;
  wrong.unit = "llm";
  EXPECT_FALSE(fits(wrong, server()));
  wrong = rule;
  wrong.cgroup = "/user.slice/*";
  EXPECT_FALSE(fits(wrong, server()));
}

TEST(PolicyRules, WhatCannotBeReadCountsAsFitting) {
  auto rule = rule_for("r");
  rule.exe = "/opt/serve/*";
  rule.uid = 1000;
  rule.unit = "llm.service";
  Process unread;
  unread.exe = Unknown::no_permission;
  EXPECT_TRUE(fits(rule, unread));
  unread.uid = 1001;
  EXPECT_FALSE(fits(rule, unread)) << "what is known still counts";
  unread.uid = 1000;
  unread.cgroup = "/";
  EXPECT_FALSE(fits(rule, unread)) << "in no unit";
}

TEST(PolicyRules, AddAndNeverTakeAway) {
  Policy policy;
  auto term_only = rule_for("gentle");
  term_only.uid = 1000;
  term_only.term_only = true;
  auto protect = rule_for("shop");
  protect.uid = 1000;
  auto forbid = rule_for("never");
  forbid.uid = 1000;
  forbid.forbid = true;
  policy.rules = {term_only};
  EXPECT_FALSE(with_policy(std::nullopt, server(), std::nullopt, policy)) << "may end, by TERM";
  policy.rules = {term_only, protect};
  auto protection = with_policy(std::nullopt, server(), std::nullopt, policy);
  EXPECT_EQ(protection->rule, "shop");
  EXPECT_EQ(protection->detail, "because (p.toml:3)");
  EXPECT_EQ(protection->source, "p.toml:3");
  EXPECT_FALSE(protection->absolute);
  const Protection built_in{"login", "a user would be locked out", false};
  EXPECT_EQ(with_policy(built_in, server(), std::nullopt, policy)->rule, "login");
  policy.rules.push_back(forbid);
  EXPECT_TRUE(with_policy(built_in, server(), std::nullopt, policy)->absolute);
  EXPECT_EQ(with_policy(built_in, server(), std::nullopt, policy)->rule, "never");
  EXPECT_EQ(with_policy(Protection{"pid1", "", true}, server(), std::nullopt, policy)->rule, "pid1");
}

TEST(PolicyRules, TheStricterTermsCount) {
  Policy policy;
  auto slow = rule_for("slow");
  slow.uid = 1000;
  slow.grace = milliseconds(30'000);
  auto slower = slow;
  slower.name = "slower";
  slower.grace = milliseconds(90'500);
  auto gentle = rule_for("gentle");
  gentle.uid = 1000;
  gentle.term_only = true;
  EXPECT_FALSE(ending_terms(server(), std::nullopt, policy).any());
  policy.rules = {slower, slow};
  auto terms = ending_terms(server(), std::nullopt, policy);
  EXPECT_EQ(terms.grace, milliseconds(90'500));
  EXPECT_FALSE(terms.term_only);
  EXPECT_EQ(terms.because, (std::vector<std::string>{"rule slower leaves it at least 90.5 s to end: because (p.toml:3)",
                                                     "rule slow leaves it at least 30 s to end: because (p.toml:3)"}));
  policy.rules.push_back(gentle);
  EXPECT_TRUE(ending_terms(server(), std::nullopt, policy).term_only);
}

TEST(PolicyRules, ReachHoldersAndRelatives) {
  testing::TestMachine m;
  m.actor("api").actor("rank", {.parent = "api"}).hold("rank", {.mib = 100});
  Policy policy;
  auto rule = rule_for("shop");
  rule.exe = "/lab/*";
  auto slow = rule;
  slow.grace = milliseconds(30'000);
  policy.rules = {rule, slow};
  const auto attribution = attribute_holders(m.snapshot(), policy);
  EXPECT_EQ(attribution.find(m.pid_of("rank"))->protection->rule, "shop");
  EXPECT_TRUE(attribution.find(m.pid_of("rank"))->terms.any());
  EXPECT_EQ(attribution.groups[0].relatives[0].protection->rule, "shop");
  EXPECT_TRUE(attribution.groups[0].relatives[0].terms.any());
}

}  // namespace
}  // namespace vacate
