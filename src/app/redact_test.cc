// SPDX-License-Identifier: Apache-2.0
#include "app/redact.h"

#include <gtest/gtest.h>

#include "attribute/programs.h"
#include "model/origin.h"

namespace vacate {
namespace {

const std::string kId(64, 'a');
const std::string kOther = std::string(63, 'a') + "b";

Snapshot with_cgroups(const std::vector<std::string>& cgroups) {
  Snapshot snapshot;
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    Process process;
    process.key.pid = static_cast<pid_t>(i + 1);
    process.cgroup = cgroups[i];
    snapshot.processes.push_back(process);
  }
  return snapshot;
}

/// What a path tells, without the names.
std::vector<bool> shape(const Origin& origin) {
  return {origin.unit.has_value(),         origin.service.has_value(),
          origin.container.has_value(),    origin.inner_container.has_value(),
          origin.pod.has_value(),          origin.session.has_value(),
          origin.user_manager.has_value(), origin.job.has_value(),
          origin.slurm_job.has_value(),    origin.is_outside,
          origin.runtime.empty()};
}

TEST(Redact, ControlGroupsTellTheSameWithoutTheirNames) {
  const std::vector<std::string> paths = {
      "/",
      "/system.slice/secret.service",
      "/system.slice/secret@one.service/worker",
      "/user.slice/user-1234.slice/session-3.scope",
      "/user.slice/user-1234.slice/user@1234.service/app.slice/app-secret.scope",
      "/system.slice/docker-" + kId + ".scope",
      "/docker/" + kId,
      "/machine.slice/libpod-" + kId + ".scope/container",
      "/machine.slice/libpod-conmon-" + kId + ".scope",
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_secret.slice/cri-containerd-" + kId +
          ".scope",
      "/kubepods/burstable/pod1234-secret/" + kId,
      "/lxc.payload.secret/system.slice/secret.service",
      "/lxc/secret",
      "/machine.slice/machine-secret\\x2dbox.scope/payload",
      "/machine.slice/machine-qemu\\x2dsecret.scope",
      "/machine.slice/systemd-nspawn@secret.service/payload",
      "/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0",
      "/slurm/uid_1234/job_1234/step_0/task_0",
      "/../../secret",
  };
  const Snapshot hidden = redacted(with_cgroups(paths));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto& cgroup = hidden.processes[i].cgroup;
    EXPECT_EQ(cgroup.find("secret"), std::string::npos) << cgroup;
    EXPECT_EQ(cgroup.find("1234"), std::string::npos) << cgroup;
    EXPECT_EQ(cgroup.find(kId), std::string::npos) << cgroup;
    EXPECT_EQ(shape(parse_origin(cgroup)), shape(parse_origin(paths[i]))) << paths[i] << " became " << cgroup;
  }
}

TEST(Redact, WhatBelongsTogetherStillDoes) {
  Snapshot snapshot = with_cgroups({"/system.slice/b.service", "/docker/" + kId, "/docker/" + kOther, "/lxc/box",
                                    "/machine.slice/machine-my\\x2dbox.scope", "/slurm/uid_1/job_77/step_0"});
  snapshot.services.units = {{"a.service", "active", "", 1, "no", {}}, {"b.service", "failed", "", 0, "always", {}}};
  snapshot.containers = {
      {kId, true, "docker"}, {kOther, false, "docker"}, {"box", true, "lxc"}, {"my-box", false, "nspawn"}};
  snapshot.jobs = {{"77", false, "slurm"}};
  const Snapshot hidden = redacted(snapshot);
  const auto origin = [&](std::size_t i) { return parse_origin(hidden.processes[i].cgroup); };
  const auto exists = [&](const std::vector<Existence>& list, const std::optional<std::string>& id) {
    for (const auto& each : list)
      if (id == each.id) return each.exists;
    return Reading<bool>(Unknown::not_asked);
  };
  for (const auto& unit : hidden.services.units)
    EXPECT_EQ(origin(0).unit == unit.name, unit.active_state == "failed") << unit.name;
  EXPECT_EQ(exists(hidden.containers, origin(1).container), Reading<bool>(true));
  EXPECT_EQ(exists(hidden.containers, origin(2).container), Reading<bool>(false));
  EXPECT_EQ(exists(hidden.containers, origin(3).container), Reading<bool>(true));
  EXPECT_EQ(exists(hidden.containers, origin(4).container), Reading<bool>(false));
  EXPECT_EQ(exists(hidden.jobs, origin(5).slurm_job), Reading<bool>(false));
}

Process redacted_program(const std::string& exe, std::vector<std::string> argv, const std::string& comm) {
  Snapshot snapshot = with_cgroups({"/"});
  auto& process = snapshot.processes.front();
  process.exe = exe;
  process.argv = std::move(argv);
  process.comm = comm;
  snapshot.shells = {"/bin/bash", "/home/a/zsh"};
  return redacted(snapshot).processes.front();
}

using Words = std::vector<std::string>;

TEST(Redact, ProgramsKeepTheirNameAndNothingElse) {
  const auto python =
      redacted_program("/home/a/venv/bin/python3.11", {"python3.11", "-m", "x", "--key=1"}, "python3.11");
  EXPECT_EQ(*python.exe, "/redacted/1/python3.11");
  EXPECT_EQ(*python.argv, Words{"python3.11"});
  EXPECT_EQ(python.comm, "python3.11");
  const auto titled = redacted_program("/usr/bin/python3.11", {"serving gpt-secret for alice"}, "serving gpt-sec");
  EXPECT_EQ(*titled.exe, "/usr/bin/python3.11");
  EXPECT_EQ(*titled.argv, Words{"title-2"});
  EXPECT_EQ(titled.comm, "title-1");
  EXPECT_EQ(*redacted_program("/opt/acme/bin/serve", {"serve"}, "serve").exe, "/opt/1/serve");
  EXPECT_EQ(*redacted_program("/usr/local/acme/serve", {"serve"}, "serve").exe, "/usr/local/1/serve");
}

TEST(Redact, WhatProtectionAndTrackersAreKnownByStays) {
  const auto impostor = redacted_program("/home/a/bin/Xorg", {"Xorg", "vt2"}, "Xorg");
  EXPECT_FALSE(is_system_path(*impostor.exe));
  EXPECT_EQ(*impostor.argv, Words{"Xorg"});
  const auto claims = redacted_program("/home/a/bin/miner", {"/usr/lib/xorg/Xorg"}, "miner");
  EXPECT_EQ(*claims.argv, Words{"Xorg"});
  const auto shell = redacted_program("/usr/bin/bash", {"-bash"}, "bash");
  EXPECT_EQ(*shell.argv, Words{"-bash"});
  EXPECT_EQ(redacted_program("/usr/bin/bash", {"-secret"}, "bash").argv->front().front(), '-');
  EXPECT_NE(redacted_program("/usr/bin/bash", {"/x/-secret"}, "bash").argv->front().front(), '-');
  const auto tracker = redacted_program(
      "/usr/bin/python3", {"python3", "-c", "from multiprocessing.resource_tracker import main;main(93)"}, "python3");
  EXPECT_EQ(*tracker.argv, (Words{"python3", "-c", "from multiprocessing.resource_tracker import main"}));
}

TEST(Redact, UsersAreStandInsAndRootStaysRoot) {
  Snapshot snapshot = with_cgroups({"/", "/", "/", "/"});
  const std::vector<std::pair<uid_t, std::string>> users = {
      {0, "root"}, {33, "www-data"}, {1234, "alice"}, {1234, "alice"}};
  for (std::size_t i = 0; i < users.size(); ++i) {
    snapshot.processes[i].uid = users[i].first;
    snapshot.processes[i].user = users[i].second;
  }
  snapshot.processes[0].login_uid = 1234;
  snapshot.processes[0].login_user = "alice";
  snapshot.caller.uid = 1234;
  const Snapshot hidden = redacted(snapshot);
  EXPECT_EQ(hidden.processes[0].user, "root");
  EXPECT_EQ(hidden.processes[1].uid, Reading<uid_t>(33));
  EXPECT_EQ(hidden.processes[1].user, "system-33");
  EXPECT_EQ(hidden.processes[2].uid, Reading<uid_t>(1001));
  EXPECT_EQ(hidden.processes[2].user, "user-1");
  EXPECT_EQ(hidden.processes[3].uid, hidden.processes[2].uid);
  EXPECT_EQ(hidden.processes[0].login_user, "user-1");
  EXPECT_EQ(hidden.caller.uid, 1001U);
}

}  // namespace
}  // namespace vacate
