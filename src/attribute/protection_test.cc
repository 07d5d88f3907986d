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
  process.exe = Unknown::no_permission;
  EXPECT_EQ(rule_of(process), "");
  EXPECT_FALSE(claim_of(process_with("/usr/bin/python3")));
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
