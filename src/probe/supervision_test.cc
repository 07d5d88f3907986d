// SPDX-License-Identifier: Apache-2.0
#include "probe/supervision.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kId(64, 'a');
const std::string kOther(64, 'b');

Process in_group(pid_t pid, const std::string& cgroup) {
  Process process;
  process.key.pid = pid;
  process.detailed = true;
  process.state = 'S';
  process.threads = 1;
  process.argv = std::vector<std::string>{"python3"};
  process.ns_pids = {pid};
  process.cgroup = cgroup;
  return process;
}

SupervisionQuestions about(const std::string& cgroup) { return questions_about({in_group(7, cgroup)}); }

TEST(QuestionsAbout, ServicesOfTheSystemWithTheirControlGroup) {
  EXPECT_THAT(about("/system.slice/llm.service").units,
              ElementsAre(UnitQuestion{"llm.service", "/system.slice/llm.service"}));
  EXPECT_THAT(about("/system.slice/llm.service/payload/x").units,
              ElementsAre(UnitQuestion{"llm.service", "/system.slice/llm.service"}));
  EXPECT_THAT(about("/a.slice/a-b.slice/w@3.service").units,
              ElementsAre(UnitQuestion{"w@3.service", "/a.slice/a-b.slice/w@3.service"}));
  // Another service's name begins in the same way.
  EXPECT_THAT(about("/system.slice/llm.service-old/llm.service").units,
              ElementsAre(UnitQuestion{"llm.service", "/system.slice/llm.service-old/llm.service"}));
}

TEST(QuestionsAbout, NothingThatAnotherManagerHas) {
  for (const char* group : {"", "/", "/user.slice/user-1001.slice/user@1001.service/app.slice/llm.service",
                            "/user.slice/user-1001.slice/session-3.scope", "/../../system.slice/llm.service",
                            "/machine.slice/machine-box.scope/payload/system.slice/llm.service"})
    EXPECT_THAT(about(group).units, IsEmpty()) << group;
  EXPECT_THAT(about("/system.slice/docker-" + kId + ".scope/system.slice/llm.service").units, IsEmpty());
}

TEST(QuestionsAbout, EachOnceAndOnlyOfTheLiving) {
  auto dead = in_group(9, "/system.slice/dead.service");
  dead.state = 'Z';
  auto unseen = in_group(10, "/system.slice/unseen.service");
  unseen.detailed = false;
  const auto questions =
      questions_about({in_group(7, "/system.slice/b.service"), in_group(8, "/system.slice/a.service"),
                       in_group(11, "/system.slice/b.service/sub"), dead, unseen});
  EXPECT_THAT(questions.units, ElementsAre(UnitQuestion{"a.service", "/system.slice/a.service"},
                                           UnitQuestion{"b.service", "/system.slice/b.service"}));
}

TEST(QuestionsAbout, ContainersByTheRuntimeThatHasThem) {
  struct Row {
    std::string group;
    std::string runtime;
  };
  const Row rows[] = {
      {"/system.slice/docker-" + kId + ".scope", "docker"},
      {"/docker/" + kId, "docker"},
      {"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kId + ".scope", "containerd"},
      {"/machine.slice/libpod-" + kId + ".scope/container", "podman"},
      // Not where the system's own runtimes keep theirs: nobody's folders can prove those gone.
      {"/user.slice/user-1001.slice/user@1001.service/user.slice/libpod-" + kId + ".scope", ""},
      {"/system.slice/ci.service/libpod-payload-" + kId, ""},
      {"/system.slice/ci.service/docker-" + kId + ".scope", ""},
      {"/agents/docker-" + kId + ".scope", ""},
  };
  for (const auto& row : rows)
    EXPECT_THAT(about(row.group).containers, ElementsAre(ContainerQuestion{kId, row.runtime})) << row.group;
  EXPECT_THAT(about("/../docker/" + kId).containers, IsEmpty());
}

TEST(QuestionsAbout, OfNestedContainersTheOuterOne) {
  EXPECT_THAT(about("/docker/" + kId + "/docker/" + kOther).containers, ElementsAre(ContainerQuestion{kId, "docker"}));
}

TEST(QuestionsAbout, SlurmJobsByNumber) {
  EXPECT_THAT(about("/system.slice/slurmstepd.scope/job_123/step_0/user/task_0").jobs, ElementsAre("123"));
  EXPECT_THAT(about("/slurm/uid_1000/job_7/step_batch").jobs, ElementsAre("7"));
  for (const char* group : {"/system.slice/job_5", "/system.slice/slurmstepd.scope/job_5_1/step_0",
                            "/system.slice/slurmstepd.scope/job_+5/step_0", "/system.slice/slurmstepd.scope/system"})
    EXPECT_THAT(about(group).jobs, IsEmpty()) << group;
}

TEST(QuestionsAbout, AMachineFullOfNamesIsCapped) {
  std::vector<Process> processes;
  for (pid_t pid = 1; pid < 2000; ++pid)
    processes.push_back(in_group(pid, "/system.slice/u" + std::to_string(pid) + ".service"));
  EXPECT_LE(questions_about(processes).units.size(), 256U);
}

TEST(FirstProcess, OfItsOwnNamespaceProvesAContainer) {
  auto first = in_group(70, "/docker/" + kId);
  first.ns_pids = {70, 1};
  EXPECT_EQ(first_process_of(kId, {in_group(7, "/docker/" + kId), first}).exists, Reading<bool>(true));
  EXPECT_FALSE(first_process_of(kOther, {first}).exists);
  first.state = 'Z';
  EXPECT_FALSE(first_process_of(kId, {first}).exists) << "the kernel ends the others";
  first.state = 'S';
  first.ns_pids = {1};
  EXPECT_FALSE(first_process_of(kId, {first}).exists) << "pid 1 of this very namespace is no container's";
}

TEST(LookedAfter, ByWhoeverNamesTheId) {
  auto shim = in_group(5, "/system.slice/containerd.service");
  shim.argv = std::vector<std::string>{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby", "-id", kId};
  EXPECT_TRUE(is_looked_after(kId, {in_group(7, "/docker/" + kId), shim}));
  EXPECT_FALSE(is_looked_after(kOther, {in_group(7, "/docker/" + kId), shim}));
  shim.argv = Unknown::timed_out;
  EXPECT_TRUE(is_looked_after(kId, {shim})) << "its arguments may say so";
}

TEST(JudgeTraces, GoneTakesMoreThanOneAbsence) {
  ContainerTraces none;
  none.all_looked_up = true;
  const auto with = [&](bool ContainerTraces::*a, bool ContainerTraces::*b) {
    auto traces = none;
    traces.*a = true;
    traces.*b = true;
    return traces;
  };
  using T = ContainerTraces;
  const Reading<bool> gone(false);
  for (const char* runtime : {"", "docker", "containerd", "podman", "cri-o", "nerdctl", "lxc", "nspawn"})
    EXPECT_FALSE(judge_traces(runtime, none).known()) << runtime;
  EXPECT_EQ(judge_traces("docker", with(&T::docker_runs, &T::docker_data)), gone);
  EXPECT_FALSE(judge_traces("docker", with(&T::docker_runs, &T::docker_runs)).known());
  EXPECT_FALSE(judge_traces("docker", with(&T::docker_data, &T::cri_runs)).known());
  EXPECT_EQ(judge_traces("containerd", with(&T::cri_runs, &T::cri_runs)), gone);
  EXPECT_EQ(judge_traces("podman", with(&T::oci_runs, &T::oci_data)), gone);
  EXPECT_FALSE(judge_traces("podman", with(&T::oci_data, &T::oci_data)).known());
  EXPECT_FALSE(judge_traces("", with(&T::docker_runs, &T::docker_data)).known());
  auto unseen = with(&T::docker_runs, &T::docker_data);
  unseen.all_looked_up = false;
  EXPECT_FALSE(judge_traces("docker", unseen).known()) << "some folder could not be looked into";
  unseen.found_in = "/run/containerd/io.containerd.runtime.v2.task/moby";
  EXPECT_EQ(judge_traces("docker", unseen), Reading<bool>(true));
}

TEST(LookUpContainers, AnswersForEachInOrder) {
  const auto answers = look_up_containers({{kId, ""}, {kOther, ""}});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].id, kId);
  EXPECT_EQ(answers[1].id, kOther);
  EXPECT_FALSE(answers[0].exists.known()) << "no runtime has such a container";
}

}  // namespace
}  // namespace vacate
