// SPDX-License-Identifier: Apache-2.0
#include "plan/narrowing.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

const std::string kFirst = "aaaaaaaaaaaa" + std::string(52, '1');
const std::string kSecond = "aaaaaaaaaaaa" + std::string(52, '2');

// Selection, with defaults for the rest.
struct Wanted {
  std::vector<ProcessSelector> pids = {};
  std::vector<uid_t> users = {};
  std::vector<std::string> units = {}, containers = {}, jobs = {}, cgroups = {};

  operator Selection() const {  // NOLINT(google-explicit-constructor)
    return {{}, true, pids, users, units, containers, jobs, cgroups};
  }
};

Snapshot machine(const std::vector<std::string>& cgroups) {
  Snapshot snapshot;
  snapshot.caller.root = true;
  for (const auto& cgroup : cgroups) {
    Process process;
    process.key.pid = static_cast<pid_t>(10 + snapshot.processes.size());
    process.uid = uid_t{1000};
    process.cgroup = cgroup;
    snapshot.processes.push_back(process);
  }
  return snapshot;
}

bool fits(const std::string& cgroup, const Wanted& selection) { return is_within(machine({cgroup}), 10, selection); }

TEST(Narrowing, UnitsOfOtherManagersBearTheSameNames) {
  const Wanted unit{.units = {"llm.service"}};
  auto alices = machine({"/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service"});
  EXPECT_FALSE(is_within(alices, 10, unit)) << "root means the system's";
  alices.caller.root = false;
  alices.caller.uid = 1000;
  EXPECT_TRUE(is_within(alices, 10, unit));
  alices.caller.uid = 1001;
  EXPECT_FALSE(is_within(alices, 10, unit));
}

TEST(Narrowing, ByUnit) {
  const Wanted unit{.units = {"llm.service"}};
  EXPECT_TRUE(fits("/system.slice/llm.service", unit));
  EXPECT_TRUE(fits("/system.slice/llm.service/worker", unit));
  EXPECT_FALSE(fits("/system.slice/llm2.service", unit));
  EXPECT_FALSE(fits("/lxc.payload.box/system.slice/llm.service", unit)) << "a container's own unit";
  EXPECT_FALSE(fits("", unit)) << "what could not be read is not within";
  EXPECT_FALSE(is_within(machine({}), 10, unit));
}

TEST(Narrowing, ByContainerJobAndCgroup) {
  EXPECT_TRUE(fits("/docker/" + kFirst, {.containers = {kFirst}}));
  EXPECT_TRUE(fits("/docker/" + kFirst, {.containers = {"aaaaaaaaaaaa1"}}));
  EXPECT_FALSE(fits("/docker/" + kFirst, {.containers = {"aaaaaaaaaaa"}})) << "eleven digits";
  EXPECT_FALSE(fits("/docker/" + kFirst, {.containers = {kSecond}}));
  EXPECT_TRUE(fits("/lxc.payload.box", {.containers = {"box"}}));
  EXPECT_FALSE(fits("/lxc.payload.box", {.containers = {"bo"}}));
  EXPECT_TRUE(fits("/docker/" + kFirst + "/docker/" + kSecond, {.containers = {kSecond}}));
  EXPECT_TRUE(fits("/system.slice/slurmstepd.scope/job_12/step_0", {.jobs = {"12"}}));
  EXPECT_FALSE(fits("/system.slice/slurmstepd.scope/job_123/step_0", {.jobs = {"12"}}));
  EXPECT_TRUE(fits("/pbs_jobs.service/jobid/12.head", {.jobs = {"12"}}));
  EXPECT_TRUE(fits("/a/b/c", {.cgroups = {"/a/b"}}));
  EXPECT_FALSE(fits("/a/bc", {.cgroups = {"/a/b"}}));
}

TEST(Narrowing, OneKindWidensAndSeveralNarrow) {
  EXPECT_TRUE(fits("/system.slice/b.service", {.units = {"a.service", "b.service"}}));
  EXPECT_FALSE(fits("/system.slice/b.service", {.users = {1}, .units = {"b.service"}}));
  EXPECT_TRUE(fits("/system.slice/b.service", {.users = {1000}, .units = {"b.service"}, .cgroups = {"/system.slice"}}));
  EXPECT_FALSE(fits("/system.slice/b.service", {.units = {"b.service"}, .jobs = {"1"}}));
  EXPECT_TRUE(fits("", {}));
  EXPECT_FALSE(is_narrowing(Wanted{}));
  for (const auto& selection : {Wanted{.pids = {{1, {}}}}, Wanted{.users = {1}}, Wanted{.units = {"a.service"}},
                                Wanted{.containers = {"x"}}, Wanted{.jobs = {"1"}}, Wanted{.cgroups = {"/"}}})
    EXPECT_TRUE(is_narrowing(selection));
}

TEST(Narrowing, AnAmbiguousBeginningNamesBoth) {
  const auto snapshot = machine({"/docker/" + kFirst, "/docker/" + kSecond, "/docker/" + kFirst});
  EXPECT_TRUE(check_narrowing(snapshot, Wanted{.containers = {"aaaaaaaaaaaa1", kSecond, "elsewhere"}}));
  const auto checked = check_narrowing(snapshot, Wanted{.containers = {"aaaaaaaaaaaa"}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::malformed);
  EXPECT_NE(checked.error().message.find(kFirst), std::string::npos);
  EXPECT_NE(checked.error().message.find(kSecond), std::string::npos);
}

TEST(Narrowing, SaysWhatNoHolderFits) {
  auto snapshot = machine({"/system.slice/a.service", "/system.slice/b.service"});
  Attribution attribution;
  attribution.holders.resize(1);
  attribution.holders[0].key.pid = 10;
  const Wanted selection{.units = {"a.service", "b.service"}, .jobs = {"7"}};
  EXPECT_EQ(unmatched_words(snapshot, attribution, selection),
            (std::vector<std::string>{"no holder is in unit b.service", "no holder is in job 7"}));
  snapshot.processes[1].uid = uid_t{1001};
  snapshot.processes[1].user = "alice";
  EXPECT_EQ(unmatched_words(snapshot, attribution, Wanted{.users = {1001, 7}}),
            (std::vector<std::string>{"no holder belongs to user alice or 7"}));
  EXPECT_TRUE(unmatched_words(snapshot, attribution, Wanted{.users = {1001, 1000}}).empty());
  snapshot.caller.root = false;
  EXPECT_EQ(unmatched_words(snapshot, attribution, Wanted{.jobs = {"7"}}),
            (std::vector<std::string>{"no holder that can be seen is in job 7"}));
}

TEST(NarrowingWords, AreCheckedBeforeAnybodyIsLookedAt) {
  EXPECT_EQ(*parse_unit_word("llm"), "llm.service");
  EXPECT_EQ(*parse_unit_word("llm.service"), "llm.service");
  EXPECT_EQ(*parse_unit_word("run-r1.scope"), "run-r1.scope");
  EXPECT_EQ(*parse_unit_word("a.b"), "a.b.service");
  for (const auto* word : {"", "llm*", "ll?", "[a]", "a/b", "user-0.slice"})
    EXPECT_FALSE(parse_unit_word(word)) << word;
  EXPECT_EQ(*parse_job_word("0123"), "0123");
  for (const auto* word : {"", "12a", "-1", "1.2", " 1"}) EXPECT_FALSE(parse_job_word(word)) << word;
  EXPECT_TRUE(parse_cgroup_word("/"));
  for (const auto* word : {"", "a", "system.slice"}) EXPECT_FALSE(parse_cgroup_word(word)) << word;
  EXPECT_TRUE(parse_container_word("box"));
  for (const auto* word : {"", "a/b"}) EXPECT_FALSE(parse_container_word(word)) << word;
  EXPECT_EQ(parse_unit_word("\x1b[31m*").error().message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace vacate
