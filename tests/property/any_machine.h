// SPDX-License-Identifier: Apache-2.0
// Machines made at random for the laws of this folder: trees that died in part, shared clients, daemons, monitors,
// hidden and garbled facts.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <rapidcheck.h>

#include "attribute/test_machine.h"

namespace vacate::testing {

constexpr unsigned kGpus = 3;

inline int below(int limit) { return *rc::gen::inRange(0, limit); }
inline bool one_in(int n) { return below(n) == 0; }

inline Actor any_actor(const std::vector<std::string>& names) {
  static const std::vector<std::string> kExecutables = {
      "/lab/actor",       "/lab/actor",         "/lab/actor",
      "/usr/bin/bash",    "/usr/lib/xorg/Xorg", "/usr/bin/nvidia-persistenced",
      "/usr/sbin/slurmd", "/home/a/bin/Xorg",   "/usr/bin/containerd-shim-runc-v2"};
  Actor actor;
  actor.parent = one_in(3) ? (one_in(2) ? "shell" : "init")
                           : names[static_cast<std::size_t>(below(static_cast<int>(names.size())))];
  actor.exe = kExecutables[static_cast<std::size_t>(below(static_cast<int>(kExecutables.size())))];
  actor.uid = one_in(4) ? 1000U : 0U;
  actor.session = one_in(6);
  actor.group = one_in(5);
  actor.detached = one_in(6);
  actor.subreaper = one_in(8);
  actor.listens = one_in(6);
  if (one_in(3)) actor.pipe = one_in(2);
  if (one_in(10)) actor.argv = {"python3", "-c", "from multiprocessing.resource_tracker import main;main(3)"};
  return actor;
}

inline Hold any_hold() {
  Hold hold;
  hold.gpus = {static_cast<unsigned>(below(kGpus))};
  if (one_in(3)) hold.gpus = {0, 1, 2};
  hold.mib = static_cast<std::uint64_t>(below(50)) * 100;
  hold.how = static_cast<Hold::How>(below(8));
  return hold;
}

inline TestMachine any_machine() {
  TestMachine m(kGpus);
  std::vector<std::string> names = {"shell"};
  const auto count = 2 + below(12);
  for (int i = 0; i < count; ++i) {
    const auto name = "p" + std::to_string(i);
    const auto actor = any_actor(names);
    m.actor(name, actor);
    names.push_back(name);
    if (one_in(2)) m.hold(name, any_hold());
    if (one_in(3) && actor.parent != "shell" && actor.parent != "init") m.inherit(name, actor.parent);
    if (one_in(8)) m.hold(name, any_hold());
  }
  if (!one_in(4)) m.run_from(names.back(), one_in(4) ? 1000U : 0U);
  const auto caller = names.back();
  for (int i = 0; i < count; ++i) {
    const auto name = "p" + std::to_string(i);
    if (name != caller && one_in(3)) one_in(5) ? m.zombify(name) : m.dies(name);
  }
  return m;
}

/// One of the services, containers and jobs that any_services() tells of; `id` 0 to 3.
inline std::string any_cgroup(int id) {
  const std::string digit(1, static_cast<char>('a' + id));
  std::string container;
  for (int i = 0; i < 64; ++i) container += digit;
  const std::string groups[] = {"/system.slice/llm-" + digit + ".service",
                                "/system.slice/docker-" + container + ".scope",
                                "/lxc.payload.box-" + digit,
                                "/slurm/uid_1000/job_" + std::to_string(40 + id) + "/step_0",
                                "/user.slice/user-1000.slice/session-" + std::to_string(id) + ".scope",
                                "/"};
  return groups[below(6)];
}

inline Reading<bool> maybe() {
  if (one_in(3)) return Unknown::timed_out;
  return one_in(2);
}

/// Puts whole trees into services, containers and jobs, and lets their managers say what they will.
inline void add_origins(Snapshot& scan) {
  static const char* const kStates[] = {"active", "inactive", "failed", "activating", "deactivating", ""};
  for (auto& process : scan.processes) {
    const auto* parent = scan.find(process.ppid);
    const bool stays = parent != nullptr && parent->key.pid < process.key.pid && !one_in(5);
    process.cgroup = stays ? parent->cgroup : any_cgroup(below(4));
  }
  scan.services.answered = maybe();
  for (int id = 0; id < 4; ++id) {
    const std::string digit(1, static_cast<char>('a' + id));
    ServiceUnit unit;
    unit.name = "llm-" + digit + ".service";
    unit.active_state = kStates[below(6)];
    unit.sub_state = one_in(3) ? "exited" : "running";
    const auto& somebody = scan.processes[static_cast<std::size_t>(below(static_cast<int>(scan.processes.size())))];
    unit.main_pid = one_in(3) ? 0 : one_in(4) ? 777 : somebody.key.pid;
    unit.restart = one_in(2) ? "always" : "no";
    if (scan.services.answered.value_or(false) && !one_in(4)) scan.services.units.push_back(unit);
    if (!one_in(4)) scan.containers.push_back({"box-" + digit, maybe(), "lxc"});
    if (!one_in(4)) scan.jobs.push_back({std::to_string(40 + id), maybe(), "slurmd"});
  }
}

/// References that no table shows, instances, figures that only people look at.
inline void add_rarities(Snapshot& scan) {
  for (const auto& process : scan.processes) {
    if (!one_in(8)) continue;
    const auto kind = one_in(2) ? HiddenKind::in_flight : HiddenKind::io_uring_file;
    const std::string path = kind == HiddenKind::in_flight ? "" : "/dev/nvidia" + std::to_string(below(4));
    scan.hidden_references.push_back({process.key.pid, kind, below(9), static_cast<unsigned>(1 + below(3)), path});
  }
  for (auto& charge : scan.charges) {
    if (one_in(4)) charge.instances = {static_cast<std::uint32_t>(below(3)), static_cast<std::uint32_t>(3 + below(4))};
  }
  for (auto& gpu : scan.gpus) {
    if (one_in(3)) gpu.utilization = static_cast<std::uint32_t>(below(101));
    if (one_in(4)) gpu.mig = one_in(2);
    gpu.unified_memory = one_in(10);
    if (one_in(4)) gpu.recovery_action = static_cast<std::uint32_t>(below(4));
    if (one_in(12)) gpu.state = one_in(2) ? GpuState::lost : GpuState::reset_required;
  }
  for (auto& process : scan.processes) {
    if (one_in(12)) process.condition = static_cast<Condition>(below(6));
    if (one_in(10)) process.login_uid = static_cast<uid_t>(below(2) * 1000);
    if (one_in(12)) process.pid_namespace += 1;
  }
}

// The scan is never perfect: figures missing, charges of strangers, descriptors unread.
inline Snapshot any_snapshot() {
  auto scan = any_machine().snapshot();
  add_origins(scan);
  add_rarities(scan);
  for (auto& charge : scan.charges) {
    if (one_in(6)) charge.memory = Unknown::not_supported;
    if (one_in(12)) charge.pid = below(3000);
  }
  std::sort(scan.charges.begin(), scan.charges.end(),
            [](const auto& a, const auto& b) { return std::tie(a.gpu, a.pid) < std::tie(b.gpu, b.pid); });
  // Of one process on one GPU there is one row.
  scan.charges.erase(
      std::unique(scan.charges.begin(), scan.charges.end(),
                  [](const auto& a, const auto& b) { return std::tie(a.gpu, a.pid) == std::tie(b.gpu, b.pid); }),
      scan.charges.end());
  if (one_in(5)) scan.visibility.all_references = false;
  if (one_in(8)) scan.driver.state = DriverState::no_answer;
  if (one_in(8)) scan.host.whole_host = false;
  for (auto& gpu : scan.gpus) {
    if (one_in(10)) gpu.memory.used = Unknown::timed_out;
    if (one_in(4) && gpu.memory.used.known())
      gpu.memory.used = *gpu.memory.used + mebibytes(static_cast<std::uint64_t>(below(5000)));
    if (one_in(6)) gpu.utilization = 100U;
  }
  for (auto& process : scan.processes) {
    if (one_in(15)) process.exe = Unknown::no_permission;
    if (one_in(20)) process.uid = Unknown::no_permission;
    for (auto& pipe : process.pipes) {
      if (one_in(10)) pipe.other_end = Unknown::no_permission;
    }
  }
  return scan;
}

}  // namespace vacate::testing
