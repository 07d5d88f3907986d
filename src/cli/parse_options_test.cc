// SPDX-License-Identifier: Apache-2.0
#include "cli/parse_options.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/help.h"

namespace vacate {
namespace {

using Arguments = std::vector<std::string>;

template <class T>
T parsed(const Arguments& arguments) {
  const auto result = parse_options(arguments);
  const auto* options = std::get_if<Options>(&result);
  if (options == nullptr || !std::holds_alternative<T>(*options)) {
    ADD_FAILURE() << "not parsed as expected: " << (arguments.empty() ? "" : arguments.back());
    return T{};
  }
  return std::get<T>(*options);
}

std::string complaint(const Arguments& arguments) {
  const auto result = parse_options(arguments);
  const auto* error = std::get_if<UsageError>(&result);
  return error != nullptr ? error->message : "";
}

TEST(ParseOptions, WithoutArgumentsItLooks) {
  EXPECT_EQ(parsed<StatusOptions>({}).format, OutputFormat::text);
  EXPECT_EQ(parsed<StatusOptions>({"--json"}).format, OutputFormat::json);
  EXPECT_EQ(parsed<StatusOptions>({"status", "--json", "--json"}).format, OutputFormat::json);
}

TEST(ParseOptions, ListsAreCutAtCommasAndRepeat) {
  const auto options = parsed<StatusOptions>(
      {"status", "--gpu", "0,GPU-ab", "--gpu=65:00.0", "--user", "alice,1000", "--pid", "4711@99,12"});
  EXPECT_EQ(options.words.gpus, (Arguments{"0", "GPU-ab", "65:00.0"}));
  EXPECT_EQ(options.words.users, (Arguments{"alice", "1000"}));
  EXPECT_EQ(options.pids, (std::vector<ProcessSelector>{{4711, 99}, {12, std::nullopt}}));
}

TEST(ParseOptions, PolicyFiles) {
  EXPECT_EQ(parsed<StatusOptions>({"--policy", "a.toml"}).policy_file, "a.toml");
  EXPECT_EQ(parsed<FreeOptions>({"free", "--policy=a.toml"}).policy_file, "a.toml");
  EXPECT_EQ(parsed<FreeOptions>({"free"}).policy_file, std::nullopt);
  EXPECT_EQ(parsed<StatusOptions>({}).scan, ScanMethod::automatic);
  EXPECT_EQ(parsed<StatusOptions>({"--scan", "bpf"}).scan, ScanMethod::bpf);
  EXPECT_EQ(parsed<FreeOptions>({"free", "--scan=procfs"}).scan, ScanMethod::procfs);
  EXPECT_EQ(parsed<WhyOptions>({"why", "gpu:0", "--scan", "bpf"}).scan, ScanMethod::bpf);
  EXPECT_EQ(parsed<WaitOptions>({"wait", "--scan", "bpf"}).scan, ScanMethod::bpf);
  EXPECT_EQ(parsed<RunOptions>({"run", "--scan", "bpf", "--", "true"}).scan, ScanMethod::bpf);
  EXPECT_EQ(parsed<DoctorOptions>({"doctor", "--scan", "auto"}).scan, ScanMethod::automatic);
  EXPECT_EQ(parsed<RecordOptions>({"record", "--scan", "bpf"}).scan, ScanMethod::bpf);
  EXPECT_EQ(parsed<ShmOptions>({"shm", "clean", "--scan", "bpf"}).request.scan, ScanMethod::bpf);
  EXPECT_EQ(complaint({"free", "--policy", ""}), "--policy: name a file");
}

TEST(ParseOptions, PlacesAreCheckedAndReachTheRequest) {
  const Arguments words = {"--unit", "llm,run-r1.scope", "--container", "box", "--job", "17", "--cgroup", "/a/b"};
  Arguments free = {"free", "--yes"};
  free.insert(free.end(), words.begin(), words.end());
  const auto selection = parsed<FreeOptions>(free).request.selection;
  EXPECT_EQ(selection.units, (Arguments{"llm.service", "run-r1.scope"}));
  EXPECT_EQ(selection.containers, (Arguments{"box"}));
  EXPECT_EQ(selection.jobs, (Arguments{"17"}));
  EXPECT_EQ(selection.cgroups, (Arguments{"/a/b"}));
  const auto status = parsed<StatusOptions>(words).words;
  EXPECT_EQ(status.units, selection.units);
  EXPECT_EQ(status.cgroups, selection.cgroups);
}

TEST(ParseOptions, AMistakeIsNamedAndTheWayOutToo) {
  EXPECT_EQ(complaint({"free", "--gpu", "--yes"}), "--gpu needs a list, e.g. 0,1");
  EXPECT_EQ(complaint({"status", "--gpu"}), "--gpu needs a list, e.g. 0,1");
  EXPECT_EQ(complaint({"free", "--yes", "--grace"}), "--grace needs a time, e.g. 30s");
  EXPECT_EQ(complaint({"free", "--gpu", "0", "--yes=1"}), "--yes takes no value");
  EXPECT_EQ(complaint({"status", "--unit", "a,,b"}), "--unit: an empty word in its list");
  EXPECT_EQ(complaint({"shm", "--yes"}), "--yes belongs to 'vacate shm clean'");
  EXPECT_EQ(complaint({"shm", "list", "--older-than=1h"}), "--older-than belongs to 'vacate shm clean'");
  EXPECT_NE(complaint({"shm", "clean", "--family", "zzzzzz"}).find("there are "), std::string::npos);
  EXPECT_EQ(complaint({"4711"}), "unknown command '4711'; did you mean 'vacate why 4711'?");
  EXPECT_EQ(complaint({"gpu:0"}), "unknown command 'gpu:0'; did you mean 'vacate why gpu:0'?");
  EXPECT_EQ(complaint({"--verison"}), "unknown option '--verison'; did you mean '--version'?");
  EXPECT_EQ(complaint({"--hlep"}), "unknown option '--hlep'; did you mean '--help'?");
  EXPECT_EQ(complaint({"version"}), "unknown command 'version'; did you mean '--version'?");
  EXPECT_EQ(complaint({"free", "--verison"}).find("--version"), std::string::npos) << "free has no such option";
}

TEST(ParseOptions, HelpOfACommandByBothNames) {
  EXPECT_EQ(parsed<ShowText>({"help", "free"}).text, parsed<ShowText>({"free", "--help"}).text);
  EXPECT_EQ(parsed<ShowText>({"help"}).text, parsed<ShowText>({"--help"}).text);
  EXPECT_NE(complaint({"help", "fre"}).find("did you mean 'free'"), std::string::npos);
}

TEST(ParseOptions, FreeTakesTheContractsOptions) {
  const auto options = parsed<FreeOptions>({"free", "--all", "--yes", "--grace", "2s", "--timeout", "1h", "--term-only",
                                            "--even", "7", "--pid", "7", "--quiet", "--json"});
  EXPECT_EQ(options.request.scope, Scope::all);
  EXPECT_EQ(options.mode, Mode::yes);
  EXPECT_EQ(options.request.grace, std::chrono::seconds(2));
  EXPECT_EQ(options.request.timeout, std::chrono::hours(1));
  EXPECT_TRUE(options.request.term_only);
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.request.even, (std::vector<ProcessSelector>{{7, std::nullopt}}));
  const auto usual = parsed<FreeOptions>({"free"});
  EXPECT_EQ(usual.request.scope, Scope::leftovers);
  EXPECT_EQ(usual.mode, Mode::ask);
  EXPECT_EQ(usual.request.grace, std::chrono::seconds(10));
  EXPECT_EQ(usual.request.timeout, std::chrono::seconds(60));
  EXPECT_EQ(parsed<FreeOptions>({"free", "--unsure", "--dry-run"}).mode, Mode::dry_run);
}

TEST(ParseOptions, WhyTakesProcessesAndGpus) {
  const auto why = parsed<WhyOptions>({"why", "4711@99", "gpu:0", "GPU-ab", "--pid", "12", "--json", "gpu:65:00.0"});
  EXPECT_EQ(why.pids, (std::vector<ProcessSelector>{{12, std::nullopt}, {4711, 99}}));
  EXPECT_EQ(why.words.gpus, (Arguments{"0", "GPU-ab", "65:00.0"}));
  EXPECT_EQ(why.format, OutputFormat::json);
  EXPECT_EQ(parsed<WhyOptions>({"why", "--user", "alice", "--replay", "m.json"}).replay, "m.json");
  EXPECT_EQ(parsed<DoctorOptions>({"doctor", "--json"}).format, OutputFormat::json);
}

TEST(ParseOptions, RecordsAndReplays) {
  EXPECT_FALSE(parsed<RecordOptions>({"record"}).file);
  const auto record = parsed<RecordOptions>({"record", "--redact", "m.json"});
  EXPECT_EQ(record.file, "m.json");
  EXPECT_TRUE(record.redact);
  EXPECT_EQ(parsed<StatusOptions>({"--replay", "m.json"}).replay, "m.json");
  EXPECT_EQ(parsed<FreeOptions>({"free", "--dry-run", "--replay", "m.json"}).replay, "m.json");
}

TEST(ParseOptions, HelpAndVersionAreTexts) {
  EXPECT_EQ(parsed<ShowText>({"--help"}).text, general_help());
  EXPECT_EQ(parsed<ShowText>({"free", "--help"}).text, free_help());
  EXPECT_EQ(parsed<ShowText>({"status", "-h"}).text, status_help());
  EXPECT_TRUE(parsed<ShowText>({"--version"}).text.starts_with("vacate 0."));
}

TEST(ParseOptions, WhatIsWrongIsSaidInOneLine) {
  const struct {
    Arguments arguments;
    const char* says;
  } kTable[] = {
      {{"fre"}, "did you mean 'free'?"},
      {{"killall"}, "unknown command 'killall'"},
      {{"free", "--dryrun"}, "did you mean '--dry-run'?"},
      {{"free", "--jsom=1"}, "did you mean '--json'?"},
      {{"--frobnicate"}, "unknown option '--frobnicate'"},
      {{"free", "now"}, "unexpected argument 'now'"},
      {{"free", "--grace", "abc"}, "--grace: 'abc' is not a duration"},
      {{"free", "--timeout", "10"}, "--timeout: '10' is not a duration"},
      {{"free", "--pid", "x"}, "--pid: 'x' is not a process"},
      {{"free", "--pid", "4711@"}, "is not a process"},
      {{"free", "--even", "-1"}, "--even: '-1' is not a process"},
      {{"free", "--grace", "-1s"}, "--grace: '-1s' is not a duration"},
      {{"free", "--timeout", "99999999999999999999h"}, "99999999999999999999h"},
      {{"free", "--gpu", "0,"}, "empty"},
      {{"free", "--gpu"}, "--gpu"},
      {{"free", "--gpu", ""}, ""},
      {{"free", "--yes=no"}, ""},
      {{"free", "--leftovers", "--all"}, "contradict"},
      {{"free", "--yes", "--dry-run"}, "contradict"},
      {{"status", "--watch", "--json"}, "contradict"},
      {{"status", "--watch", "--replay", "m.json"}, "contradict"},
      {{"free", "--replay", "m.json"}, "--replay goes with --dry-run only"},
      {{"free", "--yes", "--replay", "m.json"}, "--replay goes with --dry-run only"},
      {{"status", "--replay", ""}, "--replay"},
      {{"why"}, "name a process or a GPU"},
      {{"why", "x"}, "'x' is neither a process nor a GPU"},
      {{"why", "gpu:"}, "'gpu:' is neither"},
      {{"why", "4711@"}, "'4711@' is neither"},
      {{"why", "-1"}, "-1"},
      {{"why", "0"}, "'0' is neither"},
      {{"whz", "1"}, "did you mean 'why'?"},
      {{"doctor", "now"}, "unexpected argument 'now'"},
      {{"dotcor"}, "did you mean 'doctor'?"},
      {{"record", "a", "b"}, "unexpected argument 'b'"},
      {{"record", "--redacted"}, "did you mean '--redact'?"},
      {{"record", ""}, "empty"},
      {{"recrod"}, "did you mean 'record'?"},
      {{"status", "--yes"}, "unknown option '--yes'"},
      {{"bad\ncommand"}, "bad\\x0acommand"},
  };
  for (const auto& row : kTable) {
    const std::string message = complaint(row.arguments);
    EXPECT_FALSE(message.empty()) << row.arguments.back();
    EXPECT_NE(message.find(row.says), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ParseLog, TakesWhatNarrowsIt) {
  const auto all = parsed<LogOptions>({"log"});
  EXPECT_EQ(all.since, std::nullopt);
  EXPECT_EQ(all.plan, "");
  const auto some = parsed<LogOptions>({"log", "--since", "2h", "--pid", "4711@99,12", "--plan=00c0ffee", "--json"});
  EXPECT_EQ(some.since, std::chrono::hours(2));
  EXPECT_EQ(some.pids, (std::vector<ProcessSelector>{{4711, 99}, {12, std::nullopt}}));
  EXPECT_EQ(some.plan, "00c0ffee");
  EXPECT_EQ(some.format, OutputFormat::json);
}

TEST(ParseLog, AMistakeIsNamed) {
  EXPECT_NE(complaint({"log", "--since", "yesterday"}).find("--since: 'yesterday'"), std::string::npos);
  EXPECT_EQ(complaint({"log", "--since"}), "--since needs a time, e.g. 12h");
  EXPECT_NE(complaint({"log", "--pid", "x"}).find("--pid: 'x'"), std::string::npos);
  EXPECT_EQ(complaint({"log", "--plan="}), "--plan needs the name of a file, or for log an id");
  for (const char* id : {"xyz", "00C0", "0123456789abcdef0", "-1"})
    EXPECT_NE(complaint({"log", std::string("--plan=") + id}).find("--plan: '"), std::string::npos) << id;
  EXPECT_NE(complaint({"log", "surplus"}).find("surplus"), std::string::npos);
}

TEST(Help, KeepsToItsRulesAndNamesEveryOption) {
  const struct {
    std::string_view text;
    const char* command;
  } kTable[] = {{general_help(), ""},  {status_help(), "status"}, {free_help(), "free"},
                {why_help(), "why"},   {doctor_help(), "doctor"}, {record_help(), "record"},
                {wait_help(), "wait"}, {run_help(), "run"},       {log_help(), "log"}};
  for (const auto& row : kTable) {
    for (const auto line : split(row.text, '\n')) {
      EXPECT_LE(display_width(line), 80U) << line;
      EXPECT_FALSE(line.ends_with('.')) << line;
    }
    const auto examples = row.text.substr(row.text.find("Examples:"));
    EXPECT_NE(examples.find("\n  vacate"), std::string_view::npos);
    if (*row.command == '\0') continue;
    for (const auto& name : option_names(row.command)) EXPECT_NE(row.text.find(name), std::string_view::npos) << name;
  }
}

}  // namespace
}  // namespace vacate
