// SPDX-License-Identifier: Apache-2.0
// `why`, and what hostile titles do to it, to `status` and to the plan of `free`.
#define JSON_NOEXCEPTION
#include "app/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/free.h"
#include "attribute/attribute.h"
#include "attribute/test_machine.h"
#include "base/text.h"

namespace vacate {
namespace {

using testing::Actor;
using ::testing::HasSubstr;
using testing::Hold;
using ::testing::Not;
using testing::TestMachine;
using Json = nlohmann::ordered_json;

Look look_at(const Snapshot& snapshot) {
  Look look{{snapshot, {}}, {}};
  look.attribution = attribute_holders(snapshot, Policy{});
  return look;
}

std::string why(const Snapshot& snapshot, const WhyQuestion& question) {
  const auto report = report_why(look_at(snapshot), question);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return report ? render_why_text(*report, {80, Colour::no}) : "";
}

std::string why_pid(const Snapshot& snapshot, pid_t pid) { return why(snapshot, {{{pid, std::nullopt}}, {}, {}}); }

/// In one line, so that a test need not know where lines are broken.
std::string joined(const std::string& text) {
  std::string line;
  for (const auto word : split(text, ' ')) {
    const auto plain = trim(word);
    if (!plain.empty()) line += std::string(plain) + ' ';
  }
  std::string flat;
  for (const char c : line) flat += c == '\n' ? ' ' : c;
  std::string once;
  for (const char c : flat)
    if (c != ' ' || once.empty() || once.back() != ' ') once += c;
  return once;
}

/// A launcher that died, a worker of it, and a live server beside them.
TestMachine leftover_beside_live() {
  TestMachine m;
  m.actor("launcher", {.argv = {"torchrun"}});
  m.actor("worker", {.parent = "launcher", .title = "VLLM::Worker"});
  m.hold("worker", {.mib = 9000});
  m.actor("server", {.argv = {"python3", "serve.py"}});
  m.hold("server", {.mib = 500});
  m.dies("launcher");
  return m;
}

TEST(Why, ALeftoverHasEvidenceReasonsAndTheCommand) {
  const auto m = leftover_beside_live();
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("worker")));
  EXPECT_THAT(text, HasSubstr("it calls itself VLLM::Worker"));
  EXPECT_THAT(text, HasSubstr("1 open file of /dev/nvidia0"));
  EXPECT_THAT(text, HasSubstr("the driver charges 9,000 MiB on GPU 0"));
  EXPECT_THAT(text, HasSubstr("standing: leftover"));
  EXPECT_THAT(text, HasSubstr("'vacate free' ends it"));
}

TEST(Why, ALiveOneIsLeftAloneUnlessNamed) {
  const auto m = leftover_beside_live();
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("server")));
  EXPECT_THAT(text, HasSubstr("standing: live"));
  EXPECT_THAT(text, HasSubstr("'vacate free' leaves it alone"));
  EXPECT_THAT(text, HasSubstr("ends it all the same"));
}

TEST(Why, ASubsetOfAClientFreesNothing) {
  TestMachine m;
  m.actor("trainer");
  m.hold("trainer", {.mib = 100});
  m.actor("loader", {.parent = "trainer"});
  m.inherit("loader", "trainer");
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("trainer")));
  EXPECT_THAT(text, HasSubstr("ending it alone frees nothing while 1001 keep the same client"));
}

TEST(Why, AnImpostorIsToldFromWhatItClaimsToBe) {
  TestMachine m;
  m.actor("launcher", {.argv = {"bash", "mine.sh"}, .uid = 1000});
  m.actor("impostor", {.parent = "launcher", .title = "Xorg", .exe = "/home/alice/bin/Xorg", .uid = 1000});
  m.hold("impostor", {.mib = 9000});
  m.actor("xorg", {.parent = "init", .argv = {"Xorg"}, .exe = "/usr/lib/xorg/Xorg"});
  m.hold("xorg", {.mib = 200});
  m.dies("launcher");
  EXPECT_THAT(joined(why_pid(m.snapshot(), m.pid_of("impostor"))), HasSubstr("claims to be Xorg"));
  const auto real = joined(why_pid(m.snapshot(), m.pid_of("xorg")));
  EXPECT_THAT(real, HasSubstr("protection - display-server"));
  EXPECT_THAT(real, HasSubstr("--even"));
}

TEST(Why, AUnitThatRestartsIsNamedWithTheWayThatHelps) {
  TestMachine m;
  m.actor("server", {.parent = "init"});
  m.hold("server", {.mib = 900});
  m.process("server").cgroup = "/system.slice/llm.service";
  auto snapshot = m.snapshot();
  snapshot.services.answered = true;
  snapshot.services.units = {{"llm.service", "active", "running", m.pid_of("server"), "always", {}}};
  const auto text = joined(why_pid(snapshot, m.pid_of("server")));
  EXPECT_THAT(text, HasSubstr("unit llm.service"));
  EXPECT_THAT(text, HasSubstr("that unit is active (running), main process: 1000"));
  EXPECT_THAT(text, HasSubstr("llm.service starts it again (Restart=always)"));
  EXPECT_THAT(text, HasSubstr("'systemctl stop llm.service'"));
}

TEST(Why, AStuckOneSaysWhereAndThatNoSignalHelps) {
  TestMachine m;
  m.actor("stuck", {.condition = Condition::stuck});
  m.hold("stuck", {.mib = 900});
  m.process("stuck").stuck_in = StuckIn::gpu_driver;
  m.process("stuck").kernel_frame = "os_acquire_mutex";
  m.process("stuck").kernel_module = "nvidia";
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("stuck")));
  EXPECT_THAT(text, HasSubstr("in code of: gpu-driver (frame os_acquire_mutex, module nvidia)"));
  EXPECT_THAT(text, HasSubstr("no signal helps"));
}

TEST(Why, WhatHoldsNothingSaysSo) {
  TestMachine m;
  m.actor("idle");
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("idle")));
  EXPECT_THAT(text, HasSubstr("it is no holder"));
  EXPECT_THAT(text, HasSubstr("ending it frees no GPU memory"));
}

TEST(Why, ARelativeHoldsNothingAndGoesWithItsGroup) {
  TestMachine m;
  m.actor("launcher", {.argv = {"torchrun"}});
  m.actor("engine", {.parent = "launcher"});
  m.actor("worker", {.parent = "engine"});
  m.hold("worker", {.mib = 9000});
  m.dies("launcher");
  const auto text = joined(why_pid(m.snapshot(), m.pid_of("engine")));
  EXPECT_THAT(text, HasSubstr("standing: leftover"));
  EXPECT_THAT(text, HasSubstr("it is ended together with them"));
}

TEST(Why, AnUnseenNumberIsABlindSpotOrNobody) {
  TestMachine m;
  auto snapshot = m.snapshot();
  EXPECT_THAT(joined(why_pid(snapshot, 77)), HasSubstr("no process 77 was seen"));
  EXPECT_THAT(joined(why_pid(snapshot, 77)), HasSubstr("there is none"));
  snapshot.charges.push_back({0, 77, mebibytes(12), {ContextKind::compute}});
  snapshot.visibility.blind_spots.push_back({"hidepid", "/proc hides the processes of other users"});
  const auto text = joined(why_pid(snapshot, 77));
  EXPECT_THAT(text, HasSubstr("it may be where this scan could not look"));
  EXPECT_THAT(text, HasSubstr("the driver charges 12 MiB on GPU 0 to this number"));
  EXPECT_THAT(joined(why(snapshot, {{{100, 5}}, {}, {}})), HasSubstr("pid 100 is another process now: 100@100"));
}

TEST(Why, AGpuHasItsAccountAndWhoMustGo) {
  const auto m = leftover_beside_live();
  const auto text = joined(why(m.snapshot(), {{}, {"0"}, {}}));
  EXPECT_THAT(text, HasSubstr("used: 9,504 MiB of 97,887 MiB"));
  EXPECT_THAT(text, HasSubstr("attributed to holders by the driver: 9,500 MiB"));
  EXPECT_THAT(text, HasSubstr("'vacate free --gpu 0' ends the leftovers: 1001"));
  EXPECT_THAT(text, HasSubstr("'vacate free --all --gpu 0' ends what is live or unsure too"));
  EXPECT_FALSE(report_why(look_at(m.snapshot()), {{}, {"9"}, {}}));
}

TEST(Why, WhoIsOutOfSightMayBeToEnd) {
  auto snapshot = TestMachine(1, 600).snapshot();
  EXPECT_THAT(joined(why(snapshot, {{}, {"0"}, {}})), HasSubstr("there is nobody to be ended here"));
  snapshot.visibility.blind_spots.push_back({"not-root", "the descriptors of 9 processes cannot be read"});
  EXPECT_THAT(joined(why(snapshot, {{}, {"0"}, {}})), HasSubstr("somebody out of sight may be"));
}

TEST(Why, HoldersAreNamedByWhereTheyCameFrom) {
  const auto m = leftover_beside_live();
  auto snapshot = m.snapshot();
  for (auto& process : snapshot.processes)
    if (process.key.pid == m.pid_of("worker")) process.cgroup = "/system.slice/llm.service";
  WhyQuestion question;
  question.narrowing.units = {"llm.service"};
  const auto report = report_why(look_at(snapshot), question);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->subjects.size(), 1U);
  EXPECT_EQ(report->subjects[0].process->pid, m.pid_of("worker"));
  question.narrowing.units = {"other.service"};
  EXPECT_FALSE(report_why(look_at(snapshot), question));
}

TEST(Why, JsonHasFactsAndSentences) {
  const auto m = leftover_beside_live();
  const auto report = report_why(look_at(m.snapshot()), {{{m.pid_of("worker"), std::nullopt}}, {"0"}, {}});
  ASSERT_TRUE(report);
  const Json json = Json::parse(render_why_json(*report), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["schema"], "vacate.why/1");
  ASSERT_EQ(json["subjects"].size(), 2U);
  EXPECT_EQ(json["subjects"][0]["holder"]["standing"], "leftover");
  EXPECT_EQ(json["subjects"][0]["usual_plan"]["steps"][0]["pid"], m.pid_of("worker"));
  EXPECT_EQ(json["subjects"][1]["gpu"]["index"], 0);
  EXPECT_FALSE(json.contains("replay"));
}

// --- hostile titles, in every command that shows them

struct HostileTitle {
  const char* name;
  std::string title;
};

std::vector<HostileTitle> hostile_titles() {
  return {{"newlines", "ok\nFORGED LINE {\"verdict\":\"released\"}\r\n\v\f"},
          {"ANSI",
           "\x1b[2J\x1b[31mred\x1b]0;pwn\x07\xc2\x9b"
           "31m\x7f\b"},
          {"bidi", "\xe2\x80\xaegro.evil\xe2\x81\xa6\xe2\x80\x8f\xe2\x80\xa8"},
          {"invalid UTF-8", "\xff\xfe\xc3(\xed\xa0\x80\xf0\x9f\x92"},
          {"128 KiB", std::string(128 * 1024, 'A')}};
}

Snapshot machine_with(const std::string& title) {
  TestMachine m;
  m.actor("launcher");
  m.actor("worker", {.parent = "launcher", .title = title});
  m.hold("worker", {.mib = 9000});
  m.actor("server", {.title = title});
  m.hold("server", {.mib = 500});
  m.dies("launcher");
  auto snapshot = m.snapshot();
  for (auto& process : snapshot.processes)
    if (process.key.pid >= 1000 && process.key.pid < 900000) process.comm = title.substr(0, 15);
  return snapshot;
}

void expect_harmless(const std::string& text, const char* what, const HostileTitle& hostile) {
  SCOPED_TRACE(std::string(what) + " with " + hostile.name);
  EXPECT_EQ(printable(hostile.title).find("FORGED") != std::string::npos && text.find("\nFORGED") != std::string::npos,
            false);
  for (const auto line : split(text, '\n')) {
    EXPECT_EQ(printable(line, 1U << 20U), line);
    EXPECT_LE(display_width(line), 80U) << line;
  }
}

void expect_valid(const std::string& json, const char* what, const HostileTitle& hostile) {
  SCOPED_TRACE(std::string(what) + " --json with " + hostile.name);
  EXPECT_TRUE(Json::accept(json));
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  EXPECT_EQ(printable(std::string_view(json).substr(0, json.size() - 1), 1U << 22U), json.substr(0, json.size() - 1));
}

TEST(Why, WhatCannotBeSeenIsNotNothing) {
  Snapshot snapshot = machine_with("engine");
  snapshot.references.clear();
  snapshot.charges.clear();
  const auto text_of = [](const Snapshot& seen) {
    const auto report = report_why(look_at(seen), {{{1001, std::nullopt}}, {}, {}});
    return report ? render_why_text(*report, {80, Colour::no}) : report.error().message;
  };
  EXPECT_NE(text_of(snapshot).find("it is no holder"), std::string::npos) << text_of(snapshot);
  snapshot.caller.root = false;
  snapshot.visibility.all_references = false;
  const std::string text = text_of(snapshot);
  EXPECT_NE(text.find("what it holds cannot be seen: run as root"), std::string::npos) << text;
  EXPECT_EQ(text.find("no holder"), std::string::npos) << text;
  EXPECT_EQ(text.find("frees no"), std::string::npos) << text;
}

TEST(Why, NamesTheNarrowerCommandWhereTheUsualOneGoesFurther) {
  TestMachine m;
  for (const auto* name : {"one", "other"}) {
    const std::string launcher = std::string(name) + "-launcher";
    m.actor(launcher);
    m.actor(name, {.parent = launcher});
    m.hold(name, {.mib = 900});
    m.dies(launcher);
  }
  const auto snapshot = m.snapshot();
  const auto look = look_at(snapshot);
  ASSERT_EQ(look.attribution.holders.size(), 2U);
  const pid_t pid = look.attribution.holders[0].key.pid;
  const auto report = report_why(look_at(snapshot), {{{pid, std::nullopt}}, {}, {}});
  ASSERT_TRUE(report);
  const std::string text = render_why_text(*report, {200, Colour::no});
  EXPECT_NE(text.find("'vacate free --pid " + std::to_string(pid) + "' ends it alone"), std::string::npos) << text;
}

TEST(Status, SaysWhatFreeSaysOfAPidThatNoHolderHas) {
  const auto status_of = [](const Snapshot& seen, const ProcessSelector& wanted) {
    Asked asked;
    asked.selection.pids = {wanted};
    return report_status(look_at(seen), {}, std::move(asked));
  };
  Snapshot snapshot = machine_with("engine");
  const auto nobody = status_of(snapshot, {9999, std::nullopt});
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->unmatched, std::vector<std::string>{"process 9999 does not exist"});
  EXPECT_TRUE(nobody->of_selected);
  EXPECT_TRUE(status_of(snapshot, {1001, std::nullopt})->unmatched.empty());
  snapshot.caller.root = false;
  snapshot.visibility.all_references = false;
  EXPECT_EQ(status_of(snapshot, {9999, std::nullopt})->unmatched,
            std::vector<std::string>{"process 9999 cannot be seen: run as root"});
}

TEST(HostileTitles, StayOneLineInEveryCommand) {
  for (const auto& hostile : hostile_titles()) {
    const Snapshot snapshot = machine_with(hostile.title);
    const RenderStyle style{80, Colour::no};
    const auto status = report_status(look_at(snapshot), {}, {});
    ASSERT_TRUE(status);
    EXPECT_EQ(status->attribution.holders.size(), 2U);
    expect_harmless(render_status_text(*status, style), "status", hostile);
    expect_valid(render_status_json(*status), "status", hostile);
    const auto report = report_why(look_at(snapshot), {{{1001, std::nullopt}, {1002, std::nullopt}}, {"0"}, {}});
    ASSERT_TRUE(report);
    expect_harmless(render_why_text(*report, style), "why", hostile);
    expect_valid(render_why_json(*report), "why", hostile);
    FreeRequest request;
    request.scope = Scope::all;
    const auto prepared = prepare_free(look_at(snapshot), {}, request, Deadline::Clock::now());
    ASSERT_TRUE(prepared);
    EXPECT_EQ(prepared->plan.steps.size(), 2U);
    expect_harmless(render_plan_text(prepared->plan, request, style), "free --dry-run", hostile);
    expect_valid(render_free_json(rehearse(*prepared, Policy{}).outcome), "free --dry-run", hostile);
  }
}

}  // namespace
}  // namespace vacate
