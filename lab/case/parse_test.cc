// SPDX-License-Identifier: Apache-2.0
// What the case format accepts, what it makes of it, and the line and words with which it refuses the rest.
#include "lab/case/parse.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

Case parsed(const std::string& text) {
  auto result = parse_case("title = 't'\n" + text, "a.toml");
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : Case{};
}

std::string refusal(const std::string& text) {
  const auto result = parse_case(text, "a.toml");
  return result ? std::string() : result.error().message;
}

TEST(ParseCase, DefaultsAreResolved) {
  const Case c = parsed("[[actor]]\nname = 'a'\nholds = [{ gpu = 0, memory = 7 }]\n");
  EXPECT_EQ(c.name, "a");
  ASSERT_THAT(c.machine.gpus, SizeIs(1));
  EXPECT_EQ(c.machine.gpus[0].memory, 97887U);
  EXPECT_EQ(c.machine.gpus[0].baseline, 4U);
  ASSERT_THAT(c.actors, SizeIs(1));
  EXPECT_EQ(c.actors[0].parent, kShell);
  EXPECT_THAT(c.actors[0].argv, ElementsAre("a"));
  EXPECT_FALSE(c.actors[0].pipe);
  ASSERT_THAT(c.actors[0].holds, SizeIs(1));
  EXPECT_EQ(c.actors[0].holds[0].how, How::compute);
  EXPECT_EQ(c.actors[0].holds[0].memory, 7U);
  EXPECT_EQ(c.actors[0].holds[0].release, Release{});
}

TEST(ParseCase, OverridesApplyToTheirGpuOnly) {
  const Case c = parsed(
      "machine = { gpus = 2, memory = 100, minors = [1, 0] }\n[[gpu]]\nindex = 1\nmemory = 50\nstate = 'lost'\n");
  ASSERT_THAT(c.machine.gpus, SizeIs(2));
  EXPECT_EQ(c.machine.gpus[0].memory, 100U);
  EXPECT_EQ(c.machine.gpus[1].memory, 50U);
  EXPECT_EQ(c.machine.gpus[0].minor, 1);
  EXPECT_EQ(c.machine.gpus[0].state, GpuState::ok);
  EXPECT_EQ(c.machine.gpus[1].state, GpuState::lost);
}

TEST(ParseCase, CountedEntriesAreExpandedEverywhere) {
  const Case c = parsed(
      "machine = { gpus = 2 }\n[[actor]]\nname = 'm{i}'\ncount = 2\ntitle = 'T{i} {i}'\nenv = { 'R{i}' = '{i}' }\n"
      "holds = [{ gpu = '{i}' }]\n[[actor]]\nname = 'w{i}'\ncount = 2\nparent = 'm{i}'\n"
      "holds = [{ how = 'inherited', from = 'm{i}' }]\n[[shm]]\nname = 'psm_{i}'\ncount = 3\nmapped_by = ['w*']\n");
  ASSERT_THAT(c.actors, SizeIs(4));
  EXPECT_EQ(c.actors[1].title, "T1 1");
  EXPECT_EQ(c.actors[1].env.at("R1"), "1");
  EXPECT_THAT(c.actors[1].holds[0].gpus, ElementsAre(1));
  EXPECT_EQ(c.actors[3].parent, "m1");
  EXPECT_EQ(c.actors[3].holds[0].from, "m1");
  ASSERT_THAT(c.shms, SizeIs(3));
  EXPECT_EQ(c.shms[2].name, "psm_2");
  EXPECT_THAT(c.shms[2].mapped_by, ElementsAre("w0", "w1"));
}

TEST(ParseCase, ParentsAndOwnersComeFirst) {
  const Case c = parsed(
      "actor = [ { name = 'child', parent = 'top' }, { name = 'importer', holds = [{ gpu = 0, memory = 1, how = "
      "'exported', "
      "from = 'owner' }] }, { name = 'owner' }, { name = 'top' } ]\n");
  std::vector<std::string> names;
  for (const auto& actor : c.actors) names.push_back(actor.name);
  EXPECT_THAT(names, ElementsAre("owner", "importer", "top", "child"));
}

TEST(ParseCase, OwnerBelowItsUserDoesNotBreakParentsFirst) {
  const Case c = parsed(
      "actor = [ { name = 'x', holds = [{ gpu = 0, how = 'exported', from = 'y' }] }, { name = 'y', parent = 'z' }, "
      "{ name = 'z', parent = 'x' } ]\n");
  std::vector<std::string> names;
  for (const auto& actor : c.actors) names.push_back(actor.name);
  EXPECT_THAT(names, ElementsAre("x", "z", "y"));
}

TEST(ParseCase, PipeFollowsTheRule) {
  const Case c = parsed(
      "actor = [ { name = 'bash', exe = '/bin/bash' }, { name = 'server' }, { name = 'ofbash', parent = 'bash' },\n"
      "{ name = 'worker', parent = 'server' }, { name = 'daemon', parent = 'init' },\n"
      "{ name = 'away', parent = 'server', detached = true },\n"
      "{ name = 'said', parent = 'server', detached = true, pipe = true }, { name = 'none', parent = 'server', pipe = "
      "false } ]\n");
  std::vector<std::string> with_pipe;
  for (const auto& actor : c.actors) {
    if (actor.pipe) with_pipe.push_back(actor.name);
  }
  EXPECT_THAT(with_pipe, ElementsAre("worker", "said"));
}

TEST(ParseCase, ChildrenAreInTheirParentsPidNamespace) {
  const Case c =
      parsed("actor = [ { name = 'box', pidns = 'b' }, { name = 'in', parent = 'box' }, { name = 'out' } ]\n");
  EXPECT_EQ(c.actor("in")->pidns, "b");
  EXPECT_EQ(c.actor("out")->pidns, "");
}

TEST(ParseCase, StepsKeepOrderVerbsAndLines) {
  const Case c = parsed(
      "[[actor]]\nname = 'a'\n[[actor]]\nname = 'late'\nstart = 'later'\n"
      "[[step]]\nsignal = { to = ['a', 'group:a'], with = 'KILL' }\n[[step]]\nexits = 'a'\n[[step]]\nsleep = 0.5\n"
      "[[step]]\npid_reuse = { of = 'a', by = 'late' }\n"
      "[[step]]\nrun = ['vacate', '{pid:late}']\nchild_of = 'late'\nexit = [0, 1]\nused = { '0' = 4 }\n"
      "ended_by = { 'a*' = 'TERM', late = 'exit' }\n");
  ASSERT_THAT(c.steps, SizeIs(5));
  const auto& signal = std::get<verb::Signal>(c.steps[0].verb);
  EXPECT_EQ(signal.number, SIGKILL);
  EXPECT_FALSE(signal.to[0].group);
  EXPECT_TRUE(signal.to[1].group);
  EXPECT_EQ(c.steps[0].at, (Position{8, 10}));
  EXPECT_EQ(std::get<verb::Sleep>(c.steps[2].verb).seconds, 0.5);
  EXPECT_EQ(std::get<verb::PidReuse>(c.steps[3].verb).by, "late");
  const auto& run = std::get<verb::Run>(c.steps[4].verb);
  EXPECT_EQ(run.child_of, "late");
  EXPECT_EQ(run.expect.within, 60);
  EXPECT_THAT(run.expect.exit, ElementsAre(0, 1));
  EXPECT_EQ(run.expect.used.at(0), 4U);
  EXPECT_THAT(run.expect.ended_by, ElementsAre(std::pair<std::string, std::string>("a*", "TERM"),
                                               std::pair<std::string, std::string>("late", "exit")));
}

TEST(ParseCase, JsonExpectationsGetTheirKind) {
  const Case c = parsed(
      "[[step]]\nrun = ['x']\njson = { '/a' = '*', '/b' = '96610MiB', '/c' = { min = 1, max = 2.5 }, "
      "'/d' = { contains = 'x' }, '/e' = { length = 3 }, '/f' = 'text', '/g' = 1.5, '/h' = [1, 'b'], '' = { min = 0 }, "
      "'/i' = 'MiB' }\n");
  const auto& json = std::get<verb::Run>(c.steps.at(0).verb).expect.json;
  ASSERT_THAT(json, SizeIs(10));
  EXPECT_TRUE(std::holds_alternative<expect::Present>(json[0].wanted));
  EXPECT_EQ(std::get<expect::MibOf>(json[1].wanted).mib, 96610U);
  EXPECT_EQ(std::get<expect::Between>(json[2].wanted).max, 2.5);
  EXPECT_EQ(std::get<expect::Contains>(json[3].wanted).text, "x");
  EXPECT_EQ(std::get<expect::Length>(json[4].wanted).length, 3U);
  EXPECT_EQ(std::get<expect::Equal>(json[5].wanted).value.text, "\"text\"");
  EXPECT_EQ(std::get<expect::Equal>(json[6].wanted).value.text, "1.5");
  EXPECT_EQ(std::get<expect::Equal>(json[7].wanted).value.text, "[1,\"b\"]");
  EXPECT_FALSE(std::get<expect::Between>(json[8].wanted).max);
  EXPECT_EQ(std::get<expect::Equal>(json[9].wanted).value.text, "\"MiB\"");
}

TEST(ParseCase, CopiesOfForkersHaveNames) {
  EXPECT_EQ(refusal("title = 't'\n[[actor]]\nname = 'f'\non_term = 'fork'\n[[step]]\nrun = ['x', '{pid:f+1}']\ngone = "
                    "['f+1', 'f+*', 'a+1']\n"),
            "a.toml:7:23: 'a+1' matches no actor: name one that the case has");
}

TEST(ParseCase, AllErrorsOfAFileAreToldInOrder) {
  EXPECT_EQ(refusal("titel = 'x'\n[[actor]]\nname = 'a'\nuser = 'eve'\nlisten = '80'\n"),
            "a.toml:1:1: the case has no 'title': tell the story in a sentence\n"
            "a.toml:1:1: unknown key 'titel' in the case: did you mean 'title'?\n"
            "a.toml:4:8: 'user' in [[actor]] is 'eve', but has to be 'root', 'alice' or 'bob'\n"
            "a.toml:5:10: 'listen' in [[actor]] is a string, but has to be an integer");
}

TEST(ParseCase, EachCopyOfACountedEntryComplainsOnce) {
  EXPECT_EQ(refusal("title = 't'\n[[actor]]\nname = 'a{i}'\ncount = 3\ncountt = 1\n"),
            "a.toml:5:1: unknown key 'countt' in [[actor]]: did you mean 'count'?");
}

struct Bad {
  std::string name;
  std::string text;  ///< after "title = 't'", which is line 1
  int line;
  std::string says;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.text; }

std::string name_of(const ::testing::TestParamInfo<Bad>& bad) { return bad.param.name; }

class BadCase : public ::testing::TestWithParam<Bad> {};

TEST_P(BadCase, IsRefusedWithItsLine) {
  const std::string message = refusal("title = 't'\n" + GetParam().text);
  EXPECT_THAT(message, StartsWith("a.toml:" + std::to_string(GetParam().line) + ":"));
  EXPECT_THAT(message, HasSubstr(GetParam().says));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
}

const std::string kA = "[[actor]]\nname = 'a'\n";         // lines 2 and 3
const std::string kRun = kA + "[[step]]\nrun = ['x']\n";  // lines 4 and 5

INSTANTIATE_TEST_SUITE_P(
    Structure, BadCase,
    ::testing::Values(Bad{"NotToml", "a = = 1", 2, ""}, Bad{"KeyTwice", "wrong = 'a'\nwrong = 'b'\n", 3, ""},
                      Bad{"UnknownTable", "[machin]\n", 2, "did you mean 'machine'?"},
                      Bad{"TableForArray", "[actor]\nname = 'a'\n", 2,
                          "'actor' in the case is a table, but has to be an array of tables"},
                      Bad{"ArrayForTable", "machine = []\n", 2, "[machine] is an array, but has to be a table"},
                      Bad{"NoTable", "actor = [ 1 ]\n", 2, "[[actor]] is an integer, but has to be a table"},
                      Bad{"Date", "wrong = 1979-05-27\n", 2, "is a date or time, but has to be a string"},
                      Bad{"Nul", "wrong = \"a\\u0000b\"\n", 2, "NUL"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Machine, BadCase,
    ::testing::Values(Bad{"Gpus", "[machine]\ngpus = 65\n", 3, "is 65, but has to be from 0 to 64"},
                      Bad{"Float", "[machine]\ngpus = 1.0\n", 3, "is a number, but has to be an integer"},
                      Bad{"Minors", "[machine]\ngpus = 2\nminors = [0]\n", 4, "'minors' has 1 numbers for 2 GPUs"},
                      Bad{"MinorTwice", "[machine]\ngpus = 2\nminors = [3, 3]\n", 4, "minor 3 is there twice"},
                      Bad{"Index", "[[gpu]]\nindex = 1\n", 3, "there is no GPU 1: the machine has 0 to 0"},
                      Bad{"NoIndex", "[[gpu]]\nmemory = 5\n", 2, "[[gpu]] has no 'index'"},
                      Bad{"IndexTwice", "[[gpu]]\nindex = 0\n[[gpu]]\nindex = 0\n", 5, "two [[gpu]] entries"},
                      Bad{"State", "[[gpu]]\nindex = 0\nstate = 'broken'\n", 4, "'ok', 'lost' or 'reset-required'"},
                      Bad{"Residue", "[[gpu]]\nindex = 0\nresidue = 97884\n", 2, "make 97888"},
                      Bad{"Percent", "[[gpu]]\nindex = 0\nutilization = 101\n", 4, "from 0 to 100"},
                      Bad{"Era", "[driver]\nera = '575'\n", 3, "'535.104'"},
                      Bad{"Pid", "[driver]\ngarbage_pids = [-1]\n", 3, "from 0 to 4294967295"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Actors, BadCase,
    ::testing::Values(
        Bad{"NoName", "[[actor]]\nuser = 'root'\n", 2, "[[actor]] has no 'name'"},
        Bad{"Reserved", "[[actor]]\nname = 'shell'\n", 3, "is a process of the machine"},
        Bad{"GlobName", "[[actor]]\nname = 'a*'\n", 3, "a character with a meaning"},
        Bad{"Twice", kA + kA, 5, "a second actor is called 'a'"},
        Bad{"CountNoMark", "[[actor]]\nname = 'a'\ncount = 2\n", 3, "put {i} into the name"},
        Bad{"CountZero", "[[actor]]\nname = 'a{i}'\ncount = 0\n", 4, "from 1 to"},
        Bad{"MarkNoCount", "[[actor]]\nname = 'a'\nholds = [{ gpu = '{i}' }]\n", 4, "in an entry with 'count'"},
        Bad{"Parent", kA + "parent = 'b'\n", 4, "no actor is called 'b'"},
        Bad{"Cycle", "[[actor]]\nname = 'a'\nparent = 'a'\n", 4, "its own ancestor"},
        Bad{"LateParent", "[[actor]]\nname = 'p'\nstart = 'later'\n[[actor]]\nname = 'c'\nparent = 'p'\n", 7, "later"},
        Bad{"Exe", kA + "exe = 'bin/x'\n", 4, "absolute path"}, Bad{"CgroupUp", kA + "cgroup = '/a/../b'\n", 4, "'..'"},
        Bad{"Argv", kA + "argv = []\n", 4, "'argv' is empty"}, Bad{"ArgvType", kA + "argv = [1]\n", 4, "a string"},
        Bad{"Env", kA + "env = { 'A=B' = 'x' }\n", 4, "environment variable"},
        Bad{"Freezer", kA + "freezer = 'v1'\n", 4, "for state \"frozen\""},
        Bad{"Respawn", kA + "respawn = ['a']\n", 4, "not its parent"},
        Bad{"Port", kA + "listen = 65536\n", 4, "from 0 to 65535"},
        Bad{"OnTerm", kA + "on_term = 'maybe'\n", 4, "'exit', 'ignore', 'slow', 'fork' or 'let-go'"},
        Bad{"Slow", kA + "slow = -1\n", 4, "is -1, but has to be from 0"},
        Bad{"Nan", kA + "slow = nan\n", 4, "is nan"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Holds, BadCase,
    ::testing::Values(
        Bad{"Key", kA + "holds = [{ gpu = 0, memroy = 5 }]\n", 4, "did you mean 'memory'?"},
        Bad{"Gpu", kA + "holds = [{ gpu = 3 }]\n", 4, "there is no GPU 3"},
        Bad{"GpuTwice", kA + "holds = [{ gpu = [0, 0] }]\n", 4, "in the list twice"},
        Bad{"NoGpu", kA + "holds = [{ memory = 3 }]\n", 4, "say which GPU is held"},
        Bad{"How", kA + "holds = [{ gpu = 0, how = 'by-hand' }]\n", 4, "'compute'"},
        Bad{"NoFrom", kA + "holds = [{ how = 'inherited' }]\n", 4, "needs 'from'"},
        Bad{"FromNobody", kA + "holds = [{ how = 'inherited', from = 'z' }]\n", 4, "no actor is called 'z'"},
        Bad{"FromSelf", kA + "holds = [{ how = 'inherited', from = 'a' }]\n", 4, "its own 'from'"},
        Bad{"FromIdle", kA + "holds = [{ gpu = 0, from = 'b' }]\n[[actor]]\nname = 'b'\n", 4,
            "no meaning with how = \"compute\""},
        Bad{"FilesMemory", kA + "holds = [{ gpu = 0, how = 'files', memory = 1 }]\n", 4, "nothing is charged"},
        Bad{"Nodes", kA + "holds = [{ gpu = 0, nodes = ['ctl'] }]\n", 4, "only for how = \"inherited\""},
        Bad{"Release", kA + "holds = [{ gpu = 0, release = { after = -0.5 } }]\n", 4, "-1"},
        Bad{"ReleaseKey", kA + "holds = [{ gpu = 0, release = { later = 1 } }]\n", 4, "unknown key 'later'"},
        Bad{"Steps", kA + "holds = [{ gpu = 0, release = { steps = 0 } }]\n", 4, "from 1"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Services, BadCase,
    ::testing::Values(Bad{"MpsControl", kA + "[[mps]]\nserver = 'a'\n", 4, "has no 'control'"},
                      Bad{"MpsWho", kA + "[[mps]]\ncontrol = 'b'\nserver = 'a'\n", 5, "no actor is called 'b'"},
                      Bad{"MpsClient", kA + "[[mps]]\ncontrol = 'a'\nserver = 'a'\nclients = ['a']\n", 7,
                          "'a' is no MPS client"},
                      Bad{"UnitName", kA + "[[unit]]\nname = 'x'\nmain = 'a'\n", 5, ".service"},
                      Bad{"UnitMain", kA + "[[unit]]\nname = 'x.service'\n", 4, "has no 'main'"},
                      Bad{"UnitWho", kA + "[[unit]]\nname = 'x.service'\nmain = 'b'\n", 6, "no actor is called 'b'"},
                      Bad{"ShmName", "[[shm]]\nname = 'a/b'\n", 3, "one file name"},
                      Bad{"ShmTwice", "shm = [ { name = 'a' }, { name = 'a' } ]\n", 2, "a second file"},
                      Bad{"ShmWho", "[[shm]]\nname = 'a'\nmapped_by = ['x']\n", 4, "'x' matches no actor"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Steps, BadCase,
    ::testing::Values(Bad{"NoVerb", kA + "[[step]]\nwithin = 3\n", 4, "has no verb"},
                      Bad{"TwoVerbs", kA + "[[step]]\nsleep = 1\nexits = 'a'\n", 6, "make it two steps"},
                      Bad{"Key", kRun + "exist = 0\n", 6, "did you mean 'exit'?"},
                      Bad{"KeyOfRun", kA + "[[step]]\nsleep = 1\nwithin = 2\n", 6,
                          "'within' has no meaning beside 'sleep'"},
                      Bad{"Signal", kA + "[[step]]\nsignal = { to = 'a', with = 'SIGTERM' }\n", 5, "without SIG"},
                      Bad{"SignalTo", kA + "[[step]]\nsignal = { with = 'TERM' }\n", 5, "nobody in 'to'"},
                      Bad{"Glob", kA + "[[step]]\nexits = 'b*'\n", 5, "'b*' matches no actor"},
                      Bad{"StartNow", kA + "[[step]]\nstart = 'a'\n", 5, "has started at the begin"},
                      Bad{"ReuseKeys", kA + "[[step]]\npid_reuse = { of = 'a' }\n", 5, "'pid_reuse' has no 'by'"},
                      Bad{"RunEmpty", "[[step]]\nrun = []\n", 3, "'run' is empty"},
                      Bad{"PidMark", kA + "[[step]]\nrun = ['x', '{pid:b}']\n", 5, "no actor is called 'b'"},
                      Bad{"PidMarkEnd", kA + "[[step]]\nrun = ['x', '{pid:a']\n", 5, "has no end"},
                      Bad{"Save", kRun + "save = 'plan'\n", 6, "absolute path"},
                      Bad{"User", kRun + "user = 'eve'\n", 6, "'alice'"},
                      Bad{"PidNs", kRun + "in_pidns = 'box'\n", 6, "no actor makes"},
                      Bad{"ChildOf", kRun + "child_of = 'b'\n", 6, "no actor is called 'b'"},
                      Bad{"Finish", kA + "[[step]]\nfinish = 'b'\n", 5, "no command 'b' is running"},
                      Bad{"Unfinished", kRun + "background = 'b'\n", 6, "no step finishes 'b'"},
                      Bad{"Judged", kRun + "background = 'b'\nexit = 0\n[[step]]\nfinish = 'b'\n", 7,
                          "put it into the step with finish"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Expect, BadCase,
    ::testing::Values(
        Bad{"Exit", kRun + "exit = 256\n", 6, "from 0 to 255"}, Bad{"NoExit", kRun + "exit = []\n", 6, "empty list"},
        Bad{"Gone", kRun + "gone = ['b']\n", 6, "'b' matches no actor"},
        Bad{"GoneType", kRun + "gone = 'a'\n", 6, "an array of strings"},
        Bad{"Used", kRun + "used = { '1' = 4 }\n", 6, "there is no GPU 1"},
        Bad{"UsedKey", kRun + "used = { x = 4 }\n", 6, "is no GPU index"},
        Bad{"EndedBy", kRun + "ended_by = { a = 'DEATH' }\n", 6, "is no signal"},
        Bad{"EndedByWho", kRun + "ended_by = { b = 'TERM' }\n", 6, "'b' matches no actor"},
        Bad{"Pointer", kRun + "json = { 'verdict' = 1 }\n", 6, "does not begin with '/'"},
        Bad{"PointerEscape", kRun + "json = { '/a~2' = 1 }\n", 6, "'~' alone"},
        Bad{"PointerPid", kRun + "json = { '/h/pid={pid:b}' = 1 }\n", 6, "no actor is called 'b'"},
        Bad{"JsonDate", kRun + "json = { '/a' = 1979-05-27 }\n", 6, "JSON can hold"},
        Bad{"Matcher", kRun + "json = { '/a' = { length = 1, min = 2 } }\n", 6, "has to be { min"},
        Bad{"MatcherEmpty", kRun + "json = { '/a' = { min = 2, max = 1 } }\n", 6, "nothing can be in between"},
        Bad{"Within", kRun + "within = 1\nat_least = 2\n", 7, "no command can do both"},
        Bad{"Same", kRun + "name = 'b'\nsame_bytes_as = 'b'\n", 7, "no earlier step has the name 'b'"},
        Bad{"JsonSame", kRun + "json_same = { '/a' = 'dry' }\n", 6, "no earlier step has the name 'dry'"}),
    name_of);

TEST(ReadCase, SaysWhichFileIsNotThere) {
  const auto result = read_case("/nowhere/x.toml");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "/nowhere/x.toml: No such file or directory");
}

TEST(ReadCase, EveryCaseOfTheRepositoryParses) {
  const auto folder = std::filesystem::path(VACATE_SOURCE_FOLDER) / "tests" / "cases";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const auto result = read_case(entry.path().string());
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
  }
  RecordProperty("cases", count);
}

}  // namespace
}  // namespace lab
