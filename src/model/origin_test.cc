// SPDX-License-Identifier: Apache-2.0
// One row a runtime and form of facts.md 3.5.
#include "model/origin.h"

#include <gtest/gtest.h>

namespace vacate {
namespace {

const std::string kId(64, 'a');
const std::string kOther(64, 'b');

struct Row {
  std::string cgroup;
  Origin origin;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    const auto got = parse_origin(row.cgroup);
    EXPECT_EQ(got.unit, row.origin.unit) << row.cgroup;
    EXPECT_EQ(got.service, row.origin.service) << row.cgroup;
    EXPECT_EQ(got.container, row.origin.container) << row.cgroup;
    EXPECT_EQ(got.runtime, row.origin.runtime) << row.cgroup;
    EXPECT_EQ(got.job, row.origin.job) << row.cgroup;
    EXPECT_EQ(got, row.origin) << row.cgroup;
  }
}

TEST(ParseOrigin, Containers) {
  const std::string pod = "6a1f0d2c-1111-2222-3333-444455556666";
  const std::string pod_slice =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6a1f0d2c_1111_2222_3333_"
      "444455556666.slice";
  const auto scope = [](const std::string& prefix) { return prefix + kId + ".scope"; };
  expect_rows({
      {"/system.slice/" + scope("docker-"), {.unit = scope("docker-"), .container = kId, .runtime = "docker"}},
      {"/docker/" + kId, {.container = kId, .runtime = "docker"}},
      {pod_slice + "/" + scope("cri-containerd-"),
       {.unit = scope("cri-containerd-"), .container = kId, .runtime = "containerd", .pod = pod}},
      {"/kubepods/burstable/pod" + pod + "/" + kId, {.container = kId, .pod = pod}},
      {"/system.slice/containerd.service" + pod_slice.substr(pod_slice.rfind('/')) + ":cri-containerd:" + kId,
       {.unit = "containerd.service", .container = kId, .runtime = "containerd", .pod = pod}},
      {pod_slice + "/" + scope("crio-") + "/container",
       {.unit = scope("crio-"), .container = kId, .runtime = "cri-o", .pod = pod}},
      {pod_slice + "/" + scope("crio-conmon-"), {.unit = scope("crio-conmon-"), .pod = pod}},
      {"/machine.slice/" + scope("libpod-") + "/container",
       {.unit = scope("libpod-"), .container = kId, .runtime = "podman"}},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/" + scope("libpod-"),
       {.unit = scope("libpod-"), .container = kId, .runtime = "podman", .user_manager = uid_t{1000}}},
      {"/libpod_parent/libpod-" + kId, {.container = kId, .runtime = "podman"}},
      {"/libpod_parent/conmon", {}},
      {"/machine.slice/" + scope("libpod-conmon-"), {.unit = scope("libpod-conmon-")}},
      {"/system.slice/web.service/libpod-payload-" + kId,
       {.unit = "web.service", .container = kId, .runtime = "podman"}},
      {"/machine.slice/machine-libpod_pod_" + kOther + ".slice/" + scope("libpod-"),
       {.unit = scope("libpod-"), .container = kId, .runtime = "podman", .pod = kOther}},
      {"/system.slice/" + scope("nerdctl-"), {.unit = scope("nerdctl-"), .container = kId, .runtime = "nerdctl"}},
      {"/default/" + kId, {.container = kId}},
  });
}

TEST(ParseOrigin, MachinesAndLxc) {
  expect_rows({
      {"/machine.slice/machine-my\\x2dbox.scope/payload",
       {.unit = "machine-my\\x2dbox.scope", .container = "my-box", .runtime = "nspawn"}},
      {"/machine.slice/machine-box.scope/supervisor", {.unit = "machine-box.scope"}},
      {"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", {.unit = "machine-qemu\\x2d1\\x2dvm.scope"}},
      {"/machine.slice/systemd-nspawn@box.service/payload/system.slice/llm.service",
       {.unit = "systemd-nspawn@box.service", .container = "box", .runtime = "nspawn"}},
      {"/machine.slice/systemd-nspawn@box.service/supervisor",
       {.unit = "systemd-nspawn@box.service", .service = "systemd-nspawn@box.service"}},
      {"/lxc.payload.web/system.slice/llm.service", {.container = "web", .runtime = "lxc"}},
      {"/lxc.payload/web", {.container = "web", .runtime = "lxc"}},
      {"/lxc/web/init.scope", {.container = "web", .runtime = "lxc"}},
      {"/lxc.monitor.web", {}},
      {"/lxc.monitor/web", {}},
      {"/system.slice/lxc@web.service/lxc.monitor.web", {.unit = "lxc@web.service"}},
  });
}

TEST(ParseOrigin, Units) {
  const std::string manager = "/user.slice/user-1000.slice/user@1000.service";
  expect_rows({
      {"/system.slice/llm.service", {.unit = "llm.service", .service = "llm.service"}},
      {"/system.slice/llm.service/workers/0", {.unit = "llm.service", .service = "llm.service"}},
      {"/system.slice/system-llm.slice/llm@large\\x2dmodel.service",
       {.unit = "llm@large\\x2dmodel.service", .service = "llm@large\\x2dmodel.service"}},
      {"/system.slice/run-r12.scope", {.unit = "run-r12.scope"}},
      {"/user.slice/user-1000.slice/session-c3.scope", {.unit = "session-c3.scope", .session = "c3"}},
      {manager, {.unit = "user@1000.service", .user_manager = uid_t{1000}}},
      {manager + "/init.scope", {.unit = "init.scope", .user_manager = uid_t{1000}}},
      {manager + "/app.slice/jupyter.service", {.unit = "jupyter.service", .user_manager = uid_t{1000}}},
      {manager + "/app.slice/app-gnome-x\\x2dterm-3.scope",
       {.unit = "app-gnome-x\\x2dterm-3.scope", .user_manager = uid_t{1000}}},
      {"/../../system.slice/llm.service", {.unit = "llm.service", .is_outside = true}},
      {"/../docker-" + kId + ".scope",
       {.unit = "docker-" + kId + ".scope", .container = kId, .runtime = "docker", .is_outside = true}},
  });
}

TEST(ParseOrigin, Jobs) {
  const auto slurm = [](Origin origin) {
    origin.job = "123";
    origin.slurm_job = "123";
    origin.job_system = "slurm";
    return origin;
  };
  expect_rows({
      {"/system.slice/slurmstepd.scope/job_123/step_0/user/task_1", slurm({.unit = "slurmstepd.scope"})},
      {"/system.slice/slurmstepd.scope/job_123/step_batch/slurm", slurm({.unit = "slurmstepd.scope"})},
      {"/system.slice/node7_slurmstepd.scope/job_123/step_extern/user/task_special",
       slurm({.unit = "node7_slurmstepd.scope"})},
      {"/system.slice/slurmstepd.scope/system", {.unit = "slurmstepd.scope"}},
      {"/slurm/uid_1000/job_123/step_0/task_0", slurm({})},
      {"/slurm_node7/uid_1000/job_123/step_0", slurm({})},
      {"/system.slice/slurmstepd.scope/job_123/step_0/user/task_0/libpod-" + kId,
       slurm({.unit = "slurmstepd.scope", .container = kId, .runtime = "podman"})},
      {"/docker/" + kId + "/slurm/uid_0/job_123",
       {.container = kId, .runtime = "docker", .job = "123", .job_system = "slurm"}},
      {"/user.slice/user-1000.slice/session-1.scope/job_123", {.unit = "session-1.scope", .session = "1"}},
      {"/slurm/uid_0/job_x", {}},
      {"/pbspro.slice/pbspro-41.head\\x2dnode.slice", {.job = "41.head-node", .job_system = "pbs"}},
      {"/pbs_jobs.service/jobid/41.head", {.unit = "pbs_jobs.service", .job = "41.head", .job_system = "pbs"}},
      {"/lsf/blue/job.77.4711.1600000000", {.job = "77", .job_system = "lsf"}},
      {"/htcondor/condor_var_lib_condor_execute_slot1_2@node", {.job = "slot1_2@node", .job_system = "htcondor"}},
      {"/system.slice/condor.service", {.unit = "condor.service"}},
  });
}

TEST(ParseOrigin, TheOutermostContainerIsThisHosts) {
  const auto origin =
      parse_origin("/system.slice/docker-" + kId + ".scope/kubelet.slice/cri-containerd-" + kOther + ".scope");
  EXPECT_EQ(origin.container, kId);
  EXPECT_EQ(origin.inner_container, kOther);
  EXPECT_EQ(origin.unit, "docker-" + kId + ".scope");
}

TEST(ParseOrigin, HostileAndEmptyOnesSayNothing) {
  for (const std::string path :
       {"", "/", "//", "...", "/.service", "/.scope", "/session-.scope", "/user@.slice", "/lxc.payload.", "/job_1",
        "/docker-xyz.scope", "/docker/AAAA", "/machine-.scope", "/pod", "/kubepods/pod", "/lsf/x/job.", "/:", "/-"})
    EXPECT_EQ(parse_origin(path).container, std::nullopt) << path;
  EXPECT_EQ(parse_origin("/").unit, std::nullopt);
  EXPECT_EQ(parse_origin("/.service"), Origin{});
  EXPECT_EQ(parse_origin("/user@4294967295.service").user_manager, std::nullopt);
  const std::string bytes = std::string("/a\0\x1b[31m\xff", 9) + ".service";
  EXPECT_EQ(parse_origin(bytes).unit, bytes.substr(1)) << "shown only through printable()";
  EXPECT_EQ(parse_origin("/machine-\\x2.scope").container, "\\x2");
  std::string deep;
  for (int i = 0; i < 20000; ++i) deep += "/x";
  EXPECT_EQ(parse_origin(deep), Origin{});
}

TEST(IsInCgroup, GoesPartByPart) {
  EXPECT_TRUE(is_in_cgroup("/a/b/c", "/a/b"));
  EXPECT_TRUE(is_in_cgroup("/a/b", "/a/b/"));
  EXPECT_TRUE(is_in_cgroup("/a//b", "/a/b"));
  EXPECT_TRUE(is_in_cgroup("/a", "/"));
  EXPECT_FALSE(is_in_cgroup("/a/bc", "/a/b"));
  EXPECT_FALSE(is_in_cgroup("/a", "/a/b"));
  EXPECT_FALSE(is_in_cgroup("", "/a"));
}

}  // namespace
}  // namespace vacate
