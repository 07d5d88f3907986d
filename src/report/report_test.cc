// SPDX-License-Identifier: Apache-2.0
#define JSON_NOEXCEPTION
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/format.h"
#include "report/free.h"
#include "report/status.h"

namespace vacate {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

/// A machine with one GPU and `count` leftover holders called `title`.
StatusReport machine(std::size_t count, const std::string& title) {
  StatusReport report;
  report.version = "0.1.0";
  auto& snapshot = report.snapshot;
  snapshot.driver = {"nvidia", "580.95.05", DriverState::ok, ""};
  snapshot.time = 1700000000;
  snapshot.nodes.push_back({});
  Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.pci = "00000000:65:00.0";
  gpu.name = "NVIDIA RTX PRO 6000 Blackwell";
  gpu.memory = {mebibytes(97887), mebibytes(96619), Unknown::not_supported, mebibytes(1268)};
  snapshot.gpus.push_back(gpu);
  GpuAccount account;
  account.baseline = Baseline{mebibytes(9), BaselineSource::assumed};
  account.remainder = Bytes{0};
  for (std::size_t i = 0; i < count; ++i) {
    Process process;
    process.key = {static_cast<pid_t>(212702 + i), 1000 + i, 0, 1};
    process.comm = "python3";
    process.user = "root";
    process.uid = uid_t{0};
    process.argv = std::vector<std::string>{title};
    process.started = snapshot.time - 11100;
    snapshot.processes.push_back(process);
    Holder holder;
    holder.key = process.key;
    holder.role = HolderRole::context;
    holder.standing = Standing::leftover;
    holder.because = {"it was adopted, and the pipe it was born with has lost its other end"};
    holder.group = 1;
    holder.gpus.push_back({0, mebibytes(96610), true, {{EvidenceKind::descriptor, "/dev/nvidia0", 2, "fd 12"}}});
    account.holders.push_back(holder.key.pid);
    report.attribution.holders.push_back(holder);
  }
  report.attribution.accounts.push_back(account);
  report.attribution.groups.push_back({1, account.holders, {}, std::nullopt, "", Standing::leftover});
  report.advice = advise(snapshot, report.attribution);
  return report;
}

TEST(StatusJson, HasTheKeysOfTheContractInOrder) {
  const Json json = Json::parse(render_status_json(machine(1, "VLLM::Worker_TP0")), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(keys(json), (std::vector<std::string>{"schema", "version", "time", "host", "driver", "visibility", "gpus",
                                                  "holders", "groups", "charged_to_nobody", "advice", "unmatched"}));
  EXPECT_EQ(keys(json["gpus"][0]),
            (std::vector<std::string>{"index", "uuid", "pci", "minor", "minor_unknown", "name", "state", "memory",
                                      "baseline", "attributed", "remainder", "holders", "baseline_source",
                                      "explanations", "reset_blockers"}));
  EXPECT_EQ(
      keys(json["holders"][0]),
      (std::vector<std::string>{
          "pid",   "start",  "key",         "ppid",    "pgid",      "sid",      "user",      "uid",        "comm",
          "title", "exe",    "exe_unknown", "started", "condition", "standing", "because",   "protected",  "role",
          "group", "origin", "supervisor",  "gpus",    "evidence",  "ns_pids",  "login_uid", "login_user", "tty"}));
  EXPECT_EQ(json["gpus"][0]["memory"]["used"], std::uint64_t{96619} << 20U);
  EXPECT_EQ(json["holders"][0]["gpus"][0]["memory"], std::uint64_t{96610} << 20U);
}

TEST(StatusJson, TellsWhereAHolderCameFromAndWhoLooksAfterIt) {
  auto report = machine(1, "VLLM::Worker_TP0");
  EXPECT_TRUE(Json::parse(render_status_json(report), nullptr, false)["holders"][0]["supervisor"].is_null());
  auto& process = report.snapshot.processes[0];
  ASSERT_EQ(process.key.pid, report.attribution.holders[0].key.pid);
  process.cgroup = "/system.slice/llm.service/a";
  process.ns_pids = {process.key.pid, 12};
  process.login_uid = uid_t{1000};
  process.login_user = "alice\x1b";
  process.tty = (136U << 8U) | 3U;
  report.attribution.holders[0].supervisor = Supervisor{"unit", "llm.service", 70, Restarts::yes};
  report.unmatched = {"no holder is in job 7"};
  const Json json = Json::parse(render_status_json(report), nullptr, false);
  const auto& holder = json["holders"][0];
  EXPECT_EQ(holder["supervisor"]["kind"], "unit");
  EXPECT_EQ(holder["supervisor"]["pid"], 70);
  EXPECT_EQ(holder["supervisor"]["restarts"], true);
  EXPECT_EQ(holder["origin"]["unit"], "llm.service");
  EXPECT_EQ(holder["ns_pids"][1], 12);
  EXPECT_EQ(holder["login_uid"], 1000);
  EXPECT_EQ(holder["login_user"].get<std::string>().find('\x1b'), std::string::npos);
  EXPECT_EQ(holder["tty"], "pts/3");
  EXPECT_EQ(json["unmatched"][0], "no holder is in job 7");
  const auto text = render_status_text(report, {80, Colour::no});
  EXPECT_NE(text.find("looked after by unit llm.service (pid 70), which starts it again"), std::string::npos) << text;
  EXPECT_NE(text.find("no holder is in job 7"), std::string::npos);
  report.attribution.holders[0].supervisor->restarts = Restarts::unknown;
  const Json unknown = Json::parse(render_status_json(report), nullptr, false)["holders"][0]["supervisor"];
  EXPECT_TRUE(unknown["restarts"].is_null());
  EXPECT_EQ(unknown["restarts_unknown"], "not asked");
}

TEST(StatusJson, UnknownIsNullBesideTheReason) {
  const Json json = Json::parse(render_status_json(machine(0, "")), nullptr, false);
  const auto& memory = json["gpus"][0]["memory"];
  EXPECT_TRUE(memory["reserved"].is_null());
  EXPECT_EQ(memory["reserved_unknown"], "not supported");
  EXPECT_FALSE(memory.contains("used_unknown"));
}

TEST(Status, HostileTitlesStayOneLineAndValid) {
  const std::string title = "ok\nFORGED LINE {\"verdict\":\"released\"}\x1b[2J\xff\xc2\x9b\xe2\x80\xae";
  const auto report = machine(1, title);
  const std::string json = render_status_json(report);
  EXPECT_TRUE(Json::accept(json));
  const std::string text = render_status_text(report, {200, Colour::no});
  for (const auto& output : {json, text}) {
    EXPECT_EQ(output.find("\nFORGED"), std::string::npos);
    EXPECT_EQ(output.find('\x1b'), std::string::npos);
    EXPECT_EQ(output.find("\xe2\x80\xae"), std::string::npos);
  }
}

TEST(Status, SaysWhatMayHoldMemoryOfNobodyAndWhatIsInTheWayOfAReset) {
  auto report = machine(0, "");
  auto& account = report.attribution.accounts[0];
  account.remainder = mebibytes(46111);
  account.explanations = {
      {"driver-residue", "no process holds it; what is left then is a reset of the GPU or a reboot", {}}};
  account.reset_blockers = {{812, "stop the host engine: systemctl stop nvidia-dcgm", false}};
  const std::string text = render_status_text(report, {80, Colour::no});
  EXPECT_NE(text.find("- GPU 0: no process holds it"), std::string::npos) << text;
  EXPECT_NE(text.find("in the way of a reset of GPU 0: 812; stop the host engine"), std::string::npos) << text;
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80U) << line;
  const Json gpu = Json::parse(render_status_json(report), nullptr, false)["gpus"][0];
  EXPECT_EQ(gpu["explanations"][0]["code"], "driver-residue");
  EXPECT_TRUE(gpu["explanations"][0]["pids"].empty());
  EXPECT_EQ(gpu["reset_blockers"][0]["pid"], 812);
  EXPECT_EQ(gpu["reset_blockers"][0]["transient"], false);
  account.explanations[0].code = "managed-memory";
  EXPECT_EQ(render_status_text(report, {80, Colour::no}).find("in the way"), std::string::npos)
      << "no reset is called for";
}

TEST(Status, NamesThePolicyFileOfAProtection) {
  auto report = machine(1, "engine");
  report.attribution.holders[0].protection = Protection{"shop", "it sells things (p.toml:3)", false, "p.toml:3"};
  const Json json = Json::parse(render_status_json(report), nullptr, false);
  EXPECT_EQ(json["holders"][0]["protected"]["source"], "p.toml:3");
  EXPECT_NE(render_status_text(report, {80, Colour::no}).find("protected, shop: it sells things (p.toml:3)"),
            std::string::npos);
}

TEST(StatusText, KeepsToTheWidth) {
  for (const std::size_t width : {80U, 100U, 120U}) {
    for (const auto& title : {std::string("VLLM::Worker_TP0"), std::string(300, 'A'),
                              std::string("日本語日本語日本語日本語日本語日本語日本語")}) {
      const std::string text = render_status_text(machine(8, title), {width, Colour::no});
      for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(StatusText, SaysWhoHoldsWhatAndWhatWouldHelp) {
  const std::string text = render_status_text(machine(1, "VLLM::Worker_TP0"), {120, Colour::no});
  for (const auto* word : {"GPU 0", "96,619", "212702", "root", "VLLM::Worker_TP0", "96,610 MiB", "3h05", "leftover",
                           "owner is dead", "vacate free"})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
}

TEST(StatusText, ManyThatLookAlikeAreOneLine) {
  const std::string text = render_status_text(machine(126, "pt_data_worker"), {80, Colour::no});
  EXPECT_LT(split(text, '\n').size(), 12U) << text;
  EXPECT_NE(text.find("126 pids  root  pt_data_worker"), std::string::npos) << text;
  EXPECT_NE(text.find("212702-212827"), std::string::npos) << text;
}

TEST(StatusText, OfASelectionItDoesNotSpeakOfEverybody) {
  auto report = machine(0, "");
  EXPECT_NE(render_status_text(report, {80, Colour::no}).find("\nnobody holds GPU memory"), std::string::npos);
  report.of_selected = true;
  const std::string text = render_status_text(report, {80, Colour::no});
  EXPECT_NE(text.find("none of those selected holds GPU memory"), std::string::npos) << text;
  EXPECT_EQ(text.find("nobody holds"), std::string::npos) << text;
}

std::string first_command(const StatusReport& report, const Asked& asked) {
  const auto advice = advise(report.snapshot, report.attribution, asked);
  return advice.empty() ? "none" : advice.front().command;
}

TEST(Advice, ReachesNoFurtherThanTheQuestion) {
  const auto report = machine(2, "engine");
  Asked asked;
  EXPECT_EQ(first_command(report, asked), "vacate free");
  asked.selection.users = {1000, 1001};
  asked.selection.units = {"llm.service", "session-3.scope"};
  asked.selection.containers = {"box"};
  asked.selection.jobs = {"17"};
  asked.selection.cgroups = {"/a/b"};
  asked.policy_file = "/tmp/p.toml";
  EXPECT_EQ(first_command(report, asked),
            "vacate free --user 1000,1001 --unit llm.service,session-3.scope --container box "
            "--job 17 --cgroup /a/b --policy /tmp/p.toml");
  asked.selection.pids = {{212702, std::nullopt}, {7, std::nullopt}};  // 7 is no leftover: free --pid 7 would end it
  EXPECT_EQ(first_command(report, asked), "vacate free --pid 212702,212703 --policy /tmp/p.toml");
}

TEST(Advice, HasNoCommandWhereAWordWouldHaveToBeQuoted) {
  const auto report = machine(1, "engine");
  for (const auto* word :
       {"a b", "a;reboot", "$(reboot)", "`x`", "a\\x2db.service", "-rf", "~", "a\nb", "*", "'", ""}) {
    Asked asked;
    asked.selection.units = {word};
    EXPECT_EQ(first_command(report, asked), "") << word;
    asked = {};
    asked.policy_file = word;
    EXPECT_EQ(first_command(report, asked), "") << word;
  }
  EXPECT_EQ(render_advice({"1 leftover can be ended", ""}, {80, Colour::no}), "1 leftover can be ended\n");
}

TEST(Advice, MemoryThatSomebodyLeftOutMayHoldIsNotWithoutAHolder) {
  auto report = machine(0, "");
  report.attribution.accounts[0].remainder = mebibytes(40000);
  EXPECT_EQ(first_command(report, {}), "vacate free --gpu 0");
  Asked asked;
  asked.selection.users = {1000};
  EXPECT_EQ(first_command(report, asked), "none");
}

TEST(StatusText, SaysPlainlyThatThereIsNoDriver) {
  StatusReport report;
  EXPECT_EQ(render_status_text(report, {}), "no GPU driver here: nothing can be pinned\n");
}

Step step(unsigned n, Action action, pid_t pid) {
  Step result;
  result.n = n;
  result.action = action;
  result.key = {pid, 100, 0, 1};
  result.title = "VLLM::Worker\nTP0";
  result.gpus = {0};
  result.because = {"its owner is gone"};
  result.rule = "leftover";
  return result;
}

Outcome outcome() {
  Outcome result;
  result.verdict = Verdict::released;
  result.plan = {"0123456789abcdef", "boot", 7, {step(1, Action::signal, 10), step(2, Action::refuse, 11)}};
  result.results = {{1, 10, StepStatus::gone, {"TERM"}, 0.0314159, ""},
                    {2, 11, StepStatus::refused, {}, 0, "protected"}};
  GpuOutcome gpu;
  gpu.uuid = "GPU-1";
  gpu.before = mebibytes(96619);
  gpu.after = mebibytes(4);
  gpu.baseline = Unknown::no_permission;
  gpu.verdict = GpuVerdict::released;
  result.gpus.push_back(gpu);
  return result;
}

TEST(FreeJson, HasTheKeysOfTheContractInOrder) {
  const Json json = Json::parse(render_free_json(outcome()), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(keys(json), (std::vector<std::string>{"schema", "verdict", "exit", "plan", "results", "gpus", "shm",
                                                  "rounds", "seconds", "visibility", "record"}));
  EXPECT_EQ(
      keys(json["plan"]["steps"][0]),
      (std::vector<std::string>{"n", "action", "key", "pid", "unit", "path", "signal", "because", "rule", "ask",
                                "title", "holder", "gpus", "mps_server", "term_only", "thaw", "grace", "pidfd_inode"}));
  EXPECT_EQ(keys(json["results"][0]), (std::vector<std::string>{"n", "pid", "result", "signals", "seconds", "detail"}));
  EXPECT_EQ(keys(json["gpus"][0]),
            (std::vector<std::string>{"index", "uuid", "before", "after", "baseline", "baseline_unknown", "verdict",
                                      "seconds", "held_by", "detail", "explanations", "reset_blockers"}));
  EXPECT_EQ(json["plan"]["steps"][0]["key"], "10@100");
  EXPECT_EQ(json["plan"]["steps"][0]["signal"], "TERM");
  EXPECT_TRUE(json["plan"]["steps"][1]["signal"].is_null());
  EXPECT_EQ(json["results"][0]["seconds"], 0.031);
}

TEST(FreeJson, TheExitFieldIsTheExitCode) {
  Outcome interrupted = outcome();
  interrupted.interrupted_by = 2;
  EXPECT_EQ(Json::parse(render_free_json(interrupted), nullptr, false)["exit"], 130);
  EXPECT_EQ(Json::parse(render_free_json(outcome()), nullptr, false)["exit"], 0);
}

TEST(FreeText, NamesWhatWasRefusedAndCountsTheRest) {
  const std::string text = render_outcome_text({outcome(), {}, {}}, {80, Colour::no});
  for (const auto* word : {"ended 1 process", "1 by TERM", "11  refused", "protected", "96,619", "released"})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(FreeText, HeldByNobodySaysWhoIsInTheWayOfAReset) {
  FreeReport report{outcome(), {{812, "nv-hostengine -n"}}, {}};
  auto& gpu = report.outcome.gpus[0];
  gpu.explanations = {{"driver-residue", "no process holds it", {}}};
  gpu.reset_blockers = {{812, "stop the host engine", false}};
  EXPECT_EQ(render_outcome_text(report, {80, Colour::no}).find("in the way"), std::string::npos) << "it was released";
  gpu.verdict = GpuVerdict::held_by_nobody;
  const std::string text = render_outcome_text(report, {80, Colour::no});
  EXPECT_NE(text.find("no process holds it"), std::string::npos) << text;
  EXPECT_NE(text.find("812 nv-hostengine -n: stop the host engine"), std::string::npos) << text;
}

TEST(PlanText, ATermOnlyStepSaysSo) {
  Plan plan;
  Step step;
  step.n = 1;
  step.key = {10, 100, 0, 1};
  step.terms.term_only = true;
  step.terms.grace = std::chrono::milliseconds(1500);
  step.because = {"it was adopted"};
  plan.steps = {step};
  EXPECT_NE(render_plan_text(plan, {}, {80, Colour::no}).find("TERM only"), std::string::npos);
  Outcome only;
  only.plan = plan;
  const Json json = Json::parse(render_free_json(only), nullptr, false)["plan"]["steps"][0];
  EXPECT_EQ(json["term_only"], true);
  EXPECT_EQ(json["grace"], 1.5);
}

TEST(PlanText, TheHeadHasTheFiguresThatHold) {
  using std::chrono::seconds;
  Plan plan;
  plan.steps = {step(1, Action::signal, 4711), step(2, Action::signal, 4712), step(3, Action::signal, 4713)};
  const RenderStyle style{120, Colour::no};
  FreeRequest request;
  const auto head = [&] {
    const std::string text = render_plan_text(plan, request, style);
    return std::string(split(text, '\n')[0]);
  };
  EXPECT_EQ(head(), "plan: end 3 processes, KILL 10.0 s after the first TERM");
  plan.steps[0].terms.grace = seconds(30);
  plan.steps[1].terms.grace = seconds(2);  // less than what everybody has
  plan.steps[2].terms.term_only = true;
  EXPECT_EQ(head(), "plan: end 3 processes, KILL 10.0 s after the first TERM, 30.0 s for 4711, no KILL for 4713");
  for (auto& each : plan.steps) each.terms.term_only = true;
  EXPECT_EQ(head(), "plan: end 3 processes by TERM only, no KILL");
  for (auto& each : plan.steps) each.terms = {false, seconds(30), {}};
  EXPECT_EQ(head(), "plan: end 3 processes, KILL 30.0 s after the first TERM");
}

TEST(PlanText, WarnsOfAKillThatTheTimeLimitCutsOff) {
  Plan plan;
  plan.steps = {step(1, Action::signal, 4711), step(2, Action::signal, 4712)};
  FreeRequest request;
  EXPECT_EQ(late_kill(plan.steps[0], request), std::nullopt);
  plan.steps[0].terms.grace = std::chrono::minutes(5);
  EXPECT_EQ(late_kill(plan.steps[0], request), "grace 300 s > --timeout 60 s; use --timeout 6min");
  const std::string text = render_plan_text(plan, request, {120, Colour::no});
  EXPECT_NE(text.find("KILL will not be sent to 4711: grace 300 s > --timeout 60 s; use --timeout 6min\n"),
            std::string::npos)
      << text;
  request.grace = std::chrono::minutes(2);
  EXPECT_NE(late_kill(plan.steps[1], request), std::nullopt) << "--grace counts like a rule's";
  request.term_only = true;
  EXPECT_EQ(late_kill(plan.steps[1], request), std::nullopt) << "nobody is killed anyway";
  plan.steps[0].terms.term_only = true;
  EXPECT_EQ(late_kill(plan.steps[0], {}), std::nullopt);
}

TEST(FreeText, SaysWhatDidNotHappen) {
  FreeReport report{outcome(), {}, {}};
  report.outcome.verdict = Verdict::nothing_to_do;
  report.notes = {"left out: 9"};
  const RenderStyle style{80, Colour::no};
  EXPECT_NE(render_outcome_text(report, style).find("no process here is a leftover"), std::string::npos);
  EXPECT_NE(render_outcome_text(report, style).find("\nleft out: 9\n"), std::string::npos);
  report.outcome.plan.steps[0].rule = "not-reviewed";
  EXPECT_NE(render_outcome_text(report, style).find("nobody whom the reviewed plan ends"), std::string::npos);
  report.outcome.plan.steps[0].rule = "";
  report.of_selected = true;
  EXPECT_NE(render_outcome_text(report, style).find("none among those selected is a leftover"), std::string::npos);
  report.scope = Scope::all;
  report.outcome.plan.steps = {step(1, Action::refuse, 9)};
  report.outcome.results = {{1, 9, StepStatus::already_gone, {}, 0, "it has ended since"}};
  EXPECT_EQ(render_outcome_text(report, style).find("ended 1 process"), std::string::npos) << "not by this run";
  EXPECT_NE(render_outcome_text(report, style).find("it has ended since"), std::string::npos);
  EXPECT_NE(render_outcome_text(report, style).find("none among those selected holds GPU memory"), std::string::npos);
  report.outcome.verdict = Verdict::released;
  EXPECT_NE(render_outcome_text(report, style).find("96,615 MiB came back"), std::string::npos);
  report.outcome.gpus[0].before = report.outcome.gpus[0].after;
  EXPECT_NE(render_outcome_text(report, style).find("no memory had to come back"), std::string::npos);
}

TEST(PlanText, StepsThatLookAlikeAreOneLine) {
  Plan plan;
  for (unsigned i = 0; i < 126; ++i) plan.steps.push_back(step(i + 1, Action::signal, static_cast<pid_t>(1000 + i)));
  const std::string text = render_plan_text(plan, {}, {80, Colour::no});
  EXPECT_LT(split(text, '\n').size(), 6U) << text;
  EXPECT_NE(text.find("126 x VLLM"), std::string::npos) << text;
  EXPECT_NE(text.find("1000-1125"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nTP0"), std::string::npos);
}

TEST(PlanText, WorkersWithADifferenceInTheirEvidenceShareTheirReasons) {
  Plan plan;
  for (unsigned i = 0; i < 8; ++i) {
    plan.steps.push_back(step(i + 1, Action::signal, static_cast<pid_t>(1000 + i)));
    plan.steps.back().gpus = {i};
    plan.steps.back().because.insert(plan.steps.back().because.begin(), "it has open: /dev/nvidia" + std::to_string(i));
  }
  const std::string text = render_plan_text(plan, {}, {80, Colour::no});
  EXPECT_NE(text.find("because, for 1000-1007:\n  - its owner is gone\n"), std::string::npos) << text;
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80U) << line;
}

}  // namespace
}  // namespace vacate
