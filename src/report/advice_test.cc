// SPDX-License-Identifier: Apache-2.0
#include "report/advice.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

const std::string kId = "4f1d8c0b5a7e9d3c2b1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e0d9c";

struct Row {
  std::string cgroup;
  std::string command;
  std::string text;
};

Snapshot machine(const std::vector<std::string>& cgroups) {
  Snapshot snapshot;
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    Process process;
    process.key.pid = static_cast<pid_t>(100 + i);
    process.cgroup = cgroups[i];
    snapshot.processes.push_back(std::move(process));
  }
  return snapshot;
}

Plan plan_of(const Snapshot& snapshot, Action action = Action::signal) {
  Plan plan;
  for (const auto& process : snapshot.processes) {
    Step step;
    step.action = action;
    step.key = process.key;
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

TEST(ContainerAdvice, IsTheRuntimesOwnCommand) {
  const std::vector<Row> rows = {
      {"/system.slice/docker-" + kId + ".scope", "docker stop 4f1d8c0b5a7e", "100 in container 4f1d8c0b5a7e; to stop"},
      {"/docker/" + kId, "docker stop 4f1d8c0b5a7e", "as a whole"},
      {"/machine.slice/libpod-" + kId + ".scope/container", "podman stop 4f1d8c0b5a7e", "as a whole"},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope", "podman stop 4f1d8c0b5a7e",
       "as user 1000"},
      {"/kubepods.slice/kubepods-pod6a1f_2.slice/cri-containerd-" + kId + ".scope", "crictl stop 4f1d8c0b5a7e",
       "its pod is deleted"},
      {"/kubepods.slice/kubepods-pod6a1f_2.slice/crio-" + kId + ".scope", "crictl stop 4f1d8c0b5a7e",
       "its pod is deleted"},
      {"/system.slice/nerdctl-" + kId + ".scope", "nerdctl stop 4f1d8c0b5a7e", "as a whole"},
      {"/lxc.payload.train1/init.scope", "lxc-stop -n train1", "container train1"},
      {"/machine.slice/machine-lab\\x2done.scope", "machinectl terminate lab-one", "container lab-one"},
      {"/lxc.payload.two words", "", "container two words"},
      {"/elsewhere/" + kId, "", "by its own runtime"},
  };
  for (const auto& row : rows) {
    const auto snapshot = machine({row.cgroup});
    for (const Action action : {Action::signal, Action::refuse}) {
      const auto advice = advise_on_containers(snapshot, plan_of(snapshot, action));
      ASSERT_EQ(advice.size(), 1U) << row.cgroup;
      EXPECT_EQ(advice[0].command, row.command) << row.cgroup;
      EXPECT_NE(advice[0].text.find(row.text), std::string::npos) << advice[0].text;
    }
  }
}

TEST(ContainerAdvice, IsOneAContainerAndNoneForOneThatIsGone) {
  auto snapshot = machine({"/docker/" + kId, "/user.slice/session-1.scope", "/docker/" + kId});
  const auto advice = advise_on_containers(snapshot, plan_of(snapshot));
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_EQ(advice[0].text, "100,102 in container 4f1d8c0b5a7e; to stop that as a whole");
  snapshot.containers = {{kId, false, "docker"}};
  EXPECT_TRUE(advise_on_containers(snapshot, plan_of(snapshot)).empty());
}

}  // namespace
}  // namespace vacate
