// SPDX-License-Identifier: Apache-2.0
#include "attribute/protection.h"

#include <gtest/gtest.h>

#include "attribute/test_machine.h"

namespace vacate {
namespace {

Process process_with(std::string exe, uid_t uid = 0) {
  Process process;
  process.key.pid = 4000;
  process.exe = std::move(exe);
  process.uid = uid;
  return process;
}

std::string rule_of(const Process& process, const Snapshot& snapshot = {}) {
  const auto protection = protection_of(process, snapshot);
  return protection ? protection->rule : "";
}

TEST(Protection, ByPathAndUser) {
  struct Row {
    const char* exe;
    uid_t uid;
    const char* rule;
  };
  const Row rows[] = {
      {"/usr/lib/xorg/Xorg", 0, "display-server"},
      {"/usr/lib/xorg/Xorg", 1000, "display-server"},
      {"/home/alice/bin/Xorg", 1000, ""},
      {"/usr/bin/gnome-shell", 1000, "compositor"},
      {"/usr/bin/nvidia-persistenced", 0, "nvidia-daemon"},
      {"/usr/bin/nvidia-persistenced", 118, "nvidia-daemon"},
      {"/usr/bin/nvidia-persistenced", 1000, ""},
      {"/tmp/nvidia-persistenced", 0, ""},
      {"/usr/bin/dcgm-exporter", 65532, "nvidia-daemon"},
      {"/usr/bin/nvidia-cuda-mps-server", 1000, "mps"},
      {"/usr/bin/nvidia-device-plugin", 0, "device-plugin"},
      {"/usr/bin/containerd-shim-runc-v2", 0, "container-runtime"},
      {"/usr/sbin/slurmd", 0, "scheduler"},
      {"/usr/sbin/slurmd", 1000, ""},
      {"/usr/local/lib/python3.11/site-packages/ray/core/src/ray/raylet/raylet", 1000, "scheduler"},
      {"/usr/sbin/sshd", 0, "login"},
      {"/usr/bin/qemu-system-x86_64", 64055, "virtual-machine"},
      {"/usr/bin/python3.11", 0, ""},
      {"/usr/lib/firefox-esr/firefox-esr", 1000, "browser"},
      {"/opt/google/chrome/chrome", 1000, "browser"},
      {"/home/alice/chrome", 1000, ""},
      {"/usr/bin/gpuagent", 0, "monitor"},
      {"/usr/bin/gpuagent", 1000, ""},
      {"/opt/rocm/bin/rdcd", 996, "monitor"},
      {"/tmp/rdcd", 0, ""},
      {"/usr/bin/node_exporter", 65534, "monitor"},
      {"/usr/bin/node_exporter", 1000, ""},
      {"/home/alice/node_exporter", 65534, ""},
      {"/usr/sbin/zabbix_agent2", 110, "monitor"},
      {"/usr/bin/nv-hostengine", 0, "nvidia-daemon"},
      {"/usr/bin/nv-hostengine", 1000, ""},
      {"/usr/bin/nv-fabricmanager", 0, "nvidia-daemon"},
      {"/home/alice/nv-fabricmanager", 0, ""},
      {"/usr/bin/nvidia-imex", 0, "nvidia-daemon"},
      {"/usr/bin/nvidia-powerd", 0, "nvidia-daemon"},
      {"/usr/bin/nvidia-cuda-mps-control", 0, "mps"},
      {"/var/tmp/nvidia-cuda-mps-control", 0, ""},
      {"/usr/bin/nvidia-dra-plugin", 0, "device-plugin"},
      {"/usr/bin/dockerd", 0, "container-runtime"},
      {"/usr/bin/conmon", 1000, "container-runtime"},
      {"/home/alice/conmon", 1000, ""},
      {"/usr/sbin/slurmstepd", 0, "scheduler"},
      {"/usr/sbin/slurmstepd", 1000, ""},
      {"/usr/sbin/pbs_mom", 0, "scheduler"},
      {"/usr/bin/orted", 1000, "scheduler"},
      {"/home/alice/raylet", 1000, ""},
      {"/usr/lib/systemd/systemd", 1000, "login"},
      {"/home/alice/systemd", 1000, ""},
      {"/usr/bin/tmux", 1000, "login"},
      {"/usr/bin/dbus-daemon", 1000, "login"},
      {"/usr/lib/gdm3/gdm-x-session", 1000, "display-server"},
      {"/usr/sbin/gdm3", 1000, ""},
      {"/usr/local/bin/runsc", 0, "virtual-machine"},
      {"/usr/sbin/libvirtd", 1000, ""},
  };
  for (const auto& row : rows)
    EXPECT_EQ(rule_of(process_with(row.exe, row.uid)), row.rule) << row.exe << " of " << row.uid;
}

TEST(Protection, AnUnreadableUserIsTakenForTheOneTheRuleWants) {
  auto process = process_with("/usr/sbin/slurmd");
  process.uid = Unknown::no_permission;
  EXPECT_EQ(rule_of(process), "scheduler");
}

TEST(Protection, NeverByNameAlone) {
  auto process = process_with("/home/alice/venv/bin/python3", 1000);
  process.comm = "sshd";
  process.argv = std::vector<std::string>{"/usr/sbin/sshd", "-D"};
  EXPECT_EQ(rule_of(process), "");
  EXPECT_NE(claim_of(process)->find("claims to be sshd"), std::string::npos);
  EXPECT_FALSE(claim_of(process_with("/usr/bin/python3")));
}

TEST(Protection, NobodyBecomesKillableByBeingUnreadable) {
  auto process = process_with("", 0);
  process.exe = Unknown::no_permission;
  process.comm = "nvidia-persiste";  // as the kernel cuts it
  EXPECT_EQ(rule_of(process), "nvidia-daemon");
  EXPECT_NE(protection_of(process, {})->detail.find("cannot be read"), std::string::npos);
  process.uid = 1000;
  EXPECT_EQ(rule_of(process), "") << "not the user of that program";
  process.comm = "python3";
  process.argv = std::vector<std::string>{"/usr/bin/Xorg", ":0"};
  EXPECT_EQ(rule_of(process), "display-server");
  process.argv = std::vector<std::string>{"python3"};
  EXPECT_EQ(rule_of(process), "");
  process.comm.clear();
  process.argv = Unknown::no_permission;
  EXPECT_EQ(rule_of(process), "");
}

TEST(Protection, ByTheSystemsOwnUnit) {
  auto process = process_with("/usr/libexec/persistence-wrapper", 118);
  process.cgroup = "/system.slice/nvidia-persistenced.service";
  EXPECT_EQ(rule_of(process), "nvidia-daemon");
  process.uid = 1000;
  EXPECT_EQ(rule_of(process), "") << "a user's process in it";
  process.uid = 0;
  process.exe = std::string("/home/alice/wrapper");
  EXPECT_EQ(rule_of(process), "") << "not the system's program";
  process.exe = std::string("/usr/bin/python3");
  for (const char* cgroup : {"/user.slice/user-1000.slice/user@1000.service/app.slice/nvidia-persistenced.service",
                             "/system.slice/slurmd.service", "/system.slice/docker.service",
                             "/system.slice/nvidia-persistenced.service.d", "/system.slice/", ""}) {
    process.cgroup = cgroup;
    EXPECT_EQ(rule_of(process), "") << cgroup;
  }
  process.cgroup = "/system.slice/nvidia-dcgm.service/sub";
  EXPECT_EQ(rule_of(process), "nvidia-daemon");
}

std::string rule_by_role(const Process& process, const RoleFacts& facts) {
  const auto protection = protection_by_role(process, facts);
  return protection ? protection->rule : "";
}

TEST(ProtectionByRole, Table) {
  const auto python = process_with("/usr/bin/python3.11", 1000);
  EXPECT_EQ(rule_by_role(python, {HolderRole::importer, Standing::live, true, false}), "importer");
  EXPECT_EQ(rule_by_role(python, {HolderRole::importer, Standing::live, false, false}), "");
  EXPECT_EQ(rule_by_role(python, {HolderRole::files, Standing::live, false, true}), "suspended");
  EXPECT_EQ(rule_by_role(python, {HolderRole::files, Standing::leftover, false, true}), "")
      << "whose owner is dead, nobody resumes";
  EXPECT_EQ(rule_by_role(python, {HolderRole::files, Standing::live, true, false}), "");
  EXPECT_EQ(rule_by_role(python, {HolderRole::context, Standing::live, true, true}), "");
  EXPECT_EQ(rule_by_role(process_with("/usr/bin/nvidia-smi"), {HolderRole::files}), "query");
  EXPECT_EQ(rule_by_role(process_with("/tmp/nvidia-smi"), {HolderRole::files}), "");
  EXPECT_EQ(rule_by_role(process_with("/usr/bin/nvtop"), {HolderRole::context}), "");
}

TEST(Queries, ScriptsAreKnownByTheirFile) {
  auto script = process_with("/usr/bin/python3.11", 1000);
  script.argv = std::vector<std::string>{"python3", "/home/alice/.local/bin/nvitop", "-m"};
  EXPECT_TRUE(is_query(script));
  script.argv = std::vector<std::string>{"python3", "train.py", "nvitop"};
  EXPECT_FALSE(is_query(script));
  script.argv = Unknown::no_permission;
  EXPECT_FALSE(is_query(script));
  script.exe = std::string("/home/alice/python3");
  script.argv = std::vector<std::string>{"python3", "nvitop"};
  EXPECT_FALSE(is_query(script));
}

TEST(Claims, TheNameThatIsBorneIsTold) {
  auto process = process_with("/home/alice/bin/x", 1000);
  process.comm = "nvidia-persiste";
  EXPECT_NE(claim_of(process)->find("claims to be nvidia-persiste (nvidia-daemon)"), std::string::npos);
  EXPECT_TRUE(has_protected_name("Xorg"));
  EXPECT_FALSE(has_protected_name(""));
}

TEST(Protection, LoginShells) {
  auto shell = process_with("/usr/bin/bash", 1000);
  EXPECT_EQ(rule_of(shell), "") << "a script";
  shell.sid = shell.key.pid;
  EXPECT_EQ(rule_of(shell), "");
  shell.tty = 34816;
  EXPECT_EQ(rule_of(shell), "login");
  shell.tty = 0;
  shell.argv = std::vector<std::string>{"-bash"};
  EXPECT_EQ(rule_of(shell), "login");
}

TEST(Protection, AbsoluteOnesCannotBeLifted) {
  testing::TestMachine m;
  m.actor("agent", {.parent = "init"}).actor("sh", {.parent = "agent"}).run_from("sh");
  const auto scan = m.snapshot();
  for (const auto pid : {scan.caller.self.pid, m.pid_of("sh"), m.pid_of("agent"), pid_t{1}, pid_t{2}})
    EXPECT_TRUE(protection_of(*scan.find(pid), scan)->absolute) << pid;
  EXPECT_EQ(rule_of(*scan.find(1), scan), "pid1");
  EXPECT_EQ(rule_of(*scan.find(2), scan), "kernel-thread");
  EXPECT_EQ(rule_of(*scan.find(m.pid_of("agent")), scan), "own-chain");
}

TEST(Protection, PidOneOfAnotherNamespaceCanBeNamed) {
  auto entry = process_with("/app/serve");
  entry.ns_pids = {4000, 1};
  const auto protection = protection_of(entry, {});
  EXPECT_EQ(protection->rule, "pid1");
  EXPECT_FALSE(protection->absolute);
}

}  // namespace
}  // namespace vacate
