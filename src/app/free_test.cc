// SPDX-License-Identifier: Apache-2.0
// What `free` says beside the plan: whom --all leaves out, and an --even that nobody needs.
#include "app/free.h"

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"

namespace vacate {
namespace {

using testing::TestMachine;
using How = testing::Hold::How;

Result<PreparedFree> prepared(const Snapshot& snapshot, FreeRequest request) {
  Look look{{snapshot, {}}, {}};
  look.attribution = attribute_holders(snapshot, Policy{});
  return prepare_free(std::move(look), {}, std::move(request), Deadline::Clock::now());
}

std::vector<std::string> notes(const Snapshot& snapshot, const FreeRequest& request) {
  const auto plan = prepared(snapshot, request);
  return plan ? rehearse(*plan, Policy{}).notes : std::vector<std::string>{plan.error().message};
}

TEST(Free, AllSaysWhichImporterItLeavesOut) {
  TestMachine m;
  m.actor("exporter").actor("broker", {.parent = "exporter"}).hold("broker", {.how = How::ctl});
  auto snapshot = m.snapshot();
  snapshot.gpus[0].memory.used = *snapshot.gpus[0].memory.used + mebibytes(3000);
  FreeRequest request;
  EXPECT_TRUE(notes(snapshot, request).empty()) << "nobody asked for all";
  request.scope = Scope::all;
  const auto lines = notes(snapshot, request);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("left out"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(std::to_string(m.pid_of("broker"))), std::string::npos) << lines[0];
  request.selection.users = {54321};
  EXPECT_TRUE(notes(snapshot, request).empty()) << "it was not selected";
}

TEST(Free, SaysThatAnEvenIsNotNeeded) {
  TestMachine m;
  m.actor("launcher").actor("worker", {.parent = "launcher"}).hold("worker", {.mib = 900});
  m.dies("launcher");
  const pid_t pid = m.pid_of("worker");
  FreeRequest request;
  request.selection.pids = {{pid, std::nullopt}};
  ASSERT_TRUE(prepared(m.snapshot(), request));
  EXPECT_TRUE(prepared(m.snapshot(), request)->unmatched.empty());
  request.even = request.selection.pids;
  const auto lines = prepared(m.snapshot(), request)->unmatched;
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "process " + std::to_string(pid) + " is not protected: --even " + std::to_string(pid) + " changes nothing");
  request.even = {{1, std::nullopt}};
  const auto others = prepared(m.snapshot(), request)->unmatched;
  ASSERT_EQ(others.size(), 1U) << "process 1 is protected indeed, but nobody asked for it";
  EXPECT_EQ(others[0], "process 1 is not asked for: --even 1 alone changes nothing; it holds no GPU");
}

TEST(Free, SaysThatAnEvenAloneAsksForNobody) {
  TestMachine m;
  m.actor("daemon", {.exe = "/usr/bin/nvidia-persistenced"}).hold("daemon", {.mib = 1});
  const pid_t pid = m.pid_of("daemon");
  const auto number = std::to_string(pid);
  FreeRequest request;
  request.even = {{pid, std::nullopt}};
  const auto lines = prepared(m.snapshot(), request)->unmatched;
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "process " + number + " is not asked for: --even " + number +
                          " alone changes nothing; add --pid " + number);
  request.selection.pids = request.even;
  EXPECT_TRUE(prepared(m.snapshot(), request)->unmatched.empty());
}

}  // namespace
}  // namespace vacate
