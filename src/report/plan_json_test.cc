// SPDX-License-Identifier: Apache-2.0
#include "report/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/free.h"

namespace vacate {
namespace {

using ::testing::HasSubstr;

Plan some_plan() {
  Plan plan;
  plan.id = "0123456789abcdef";
  plan.boot_id = "11111111-2222-3333-4444-555555555555";
  plan.pid_namespace = 4026531836U;
  Step ended;
  ended.n = 1;
  ended.ask = Ask::at_half_grace;
  ended.key = {4711, 156405, 99, plan.pid_namespace};
  ended.title = "VLLM::Worker";
  ended.gpus = {0, 3};
  ended.because = {"it has open: /dev/nvidia0", "its owner is gone"};
  ended.rule = "leftover";
  ended.terms.term_only = true;
  ended.terms.grace = std::chrono::milliseconds(90500);
  Step refused;
  refused.n = 2;
  refused.action = Action::refuse;
  refused.key = {17, 5, 0, plan.pid_namespace};
  refused.rule = "display-server";
  Step client = ended;
  client.n = 3;
  client.action = Action::terminate_client;
  client.ask = Ask::at_once;
  client.key.pid = 4712;
  client.mps_server = 45;
  Step relative = ended;
  relative.n = 4;
  relative.key.pid = 4713;
  relative.holder = false;
  relative.gpus.clear();
  plan.steps = {ended, refused, client, relative};
  return plan;
}

std::string text_of(const Plan& plan) {
  Outcome outcome;
  outcome.plan = plan;
  return render_free_json(outcome);
}

/// The text of some_plan() with `from` once replaced.
std::string with(const std::string& from, const std::string& to) {
  auto text = text_of(some_plan());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string plan_complaint(const std::string& text) {
  const auto plan = parse_plan_json(text);
  if (plan) return "";
  EXPECT_EQ(plan.error().code, ErrorCode::malformed);
  return plan.error().message;
}

TEST(PlanJson, WhatWasPrintedIsReadBack) {
  const auto read = parse_plan_json(text_of(some_plan()));
  ASSERT_TRUE(read) << read.error().message;
  Plan wanted = some_plan();
  wanted.steps[0].ask = wanted.steps[3].ask = Ask::at_once;  // a fresh plan says when
  EXPECT_EQ(*read, wanted);
}

TEST(PlanJson, KeysOfALaterVersionArePassedOver) {
  EXPECT_EQ(plan_complaint(with("\"schema\"", "\"new\":{\"a\":[1]},\"schema\"")), "");
  EXPECT_EQ(plan_complaint(with("\"n\":1", "\"new\":null,\"n\":1")), "");
}

TEST(PlanJson, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(plan_complaint(""), HasSubstr("is not JSON from byte"));
  EXPECT_THAT(plan_complaint("{\"schema\":"), HasSubstr("is not JSON from byte 11 on"));
  EXPECT_THAT(plan_complaint("[]"), HasSubstr("the whole: expected an object, found array"));
  EXPECT_THAT(plan_complaint("{}"), HasSubstr("/schema: expected a text, found none"));
  EXPECT_THAT(plan_complaint(std::string(40, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(plan_complaint(with("vacate.free/1", "vacate.status/1")), HasSubstr("its schema is 'vacate.status/1'"));
  EXPECT_THAT(plan_complaint(with("\"schema\"", "\"replay\":true,\"schema\"")), HasSubstr("recorded machine"));
  EXPECT_THAT(plan_complaint(with("\"plan\":", "\"plam\":")), HasSubstr("/plan: expected a plan, found none"));
  EXPECT_THAT(plan_complaint(with("\"boot_id\":\"1111", "\"boot_id\":null,\"x\":\"1111")),
              HasSubstr("/plan/boot_id: expected"));
  EXPECT_THAT(plan_complaint(with("4026531836", "-1")), HasSubstr("/plan/pid_namespace: expected a number from 0"));
  EXPECT_THAT(plan_complaint(with("\"n\":1", "\"n\":2")),
              HasSubstr("/plan/steps/0/n: expected a number from 1 to 1, found 2"));
  EXPECT_THAT(plan_complaint(with("\"signal\",\"key\"", "\"Signal\",\"key\"")),
              HasSubstr("/plan/steps/0/action: expected signal"));
  EXPECT_THAT(plan_complaint(with("\"TERM\"", "\"KILL\"")),
              HasSubstr("/plan/steps/0/signal: expected TERM, found \"KILL\""));
  EXPECT_THAT(plan_complaint(with("\"refuse\"", "\"signal\"")), "")
      << "a refusal may have no signal, and so may a signal";
  EXPECT_THAT(plan_complaint(with("4711@156405", "4711")), HasSubstr("/plan/steps/0/key: expected PID@START"));
  EXPECT_THAT(plan_complaint(with("4711@156405", "4712@156405")), HasSubstr("/plan/steps/0/key: expected PID@START"));
  EXPECT_THAT(plan_complaint(with("\"4711@156405\"", "4711")), HasSubstr("/plan/steps/0/key: expected PID@START"));
  EXPECT_THAT(plan_complaint(with("\"pid\":4711", "\"pid\":99999999")),
              HasSubstr("/plan/steps/0/pid: expected a number"));
  EXPECT_THAT(plan_complaint(with("[0,3]", "[0,-3]")), HasSubstr("/plan/steps/0/gpus: expected a list of indices"));
  EXPECT_THAT(plan_complaint(with("\"term_only\":true", "\"term_only\":1")),
              HasSubstr("term_only: expected true or false"));
  EXPECT_THAT(plan_complaint(with("90.5", "1e300")), HasSubstr("/plan/steps/0/grace: expected seconds"));
  EXPECT_THAT(plan_complaint(with("\"17@5\",\"pid\":17", "\"4711@5\",\"pid\":4711")),
              HasSubstr("/plan/steps/1/pid: 4711 is in an earlier step"));
}

TEST(PlanJson, AComplaintAboutHostileBytesIsOneLine) {
  const auto text = plan_complaint(with("\"TERM\"", "\"\\u001b[2J\\n\\u202e\xff\""));
  EXPECT_EQ(text.find_first_of("\n\x1b"), std::string::npos);
}

}  // namespace
}  // namespace vacate
