// SPDX-License-Identifier: Apache-2.0
// The rows of `vacate doctor`: each a question to the facts, the answer, its price and the way out of it.
#include "report/doctor.h"

#include <array>

#include <fmt/format.h>

#include "model/device.h"
#include "report/format.h"

namespace vacate {
namespace {

// Bits of capability(7).
constexpr unsigned kCapKill = 5, kCapSysPtrace = 19, kCapSysAdmin = 21;

bool has(const Reading<std::uint64_t>& capabilities, unsigned bit) {
  return capabilities.known() && ((*capabilities >> bit) & 1U) != 0;
}

Check capability(const DoctorReport& report, unsigned bit, std::string_view name, std::string_view cost) {
  const auto code = fmt::format("capability-{}", name);
  if (!report.facts.capabilities.known()) return {code, Health::unknown, "the capabilities cannot be read", {}, {}};
  if (has(report.facts.capabilities, bit)) return {code, Health::good, fmt::format("{} is there", name), {}, {}};
  return {code, Health::limited, fmt::format("{} is missing", name), std::string(cost),
          report.facts.uid == 0 ? "give it to the container or service that runs vacate" : "sudo vacate"};
}

Check user(const MachineFacts& facts) {
  if (facts.uid == 0) return {"root", Health::good, "runs as root", {}, {}};
  return {"root", Health::limited, fmt::format("runs as uid {}, not as root", facts.uid),
          "only your own processes can be looked into and ended", "sudo vacate"};
}

Check hidepid(const MachineFacts& facts) {
  const bool sees_all = has(facts.capabilities, kCapSysPtrace);
  if (!facts.hides_processes && !facts.denies_access)
    return {"hidepid", Health::good, "/proc shows every process", {}, {}};
  if (sees_all) return {"hidepid", Health::good, "/proc hides processes from users, not from this one", {}, {}};
  return {"hidepid", Health::limited, "/proc is mounted with hidepid", "holders of other users are not even listed",
          "run as root, or as a member of the group that the mount option gid= names"};
}

Check pid_namespace(const MachineFacts& facts) {
  if (facts.proc_shows_host) return {"pid-namespace", Health::good, "this is the host's pid namespace", {}, {}};
  return {"pid-namespace", Health::limited,
          facts.looks_contained ? "this is a container" : "this is not the host's pid namespace, or /proc hides it",
          "holders outside cannot be seen, and memory that they hold looks like nobody's",
          "run vacate on the host, or start the container with --pid=host"};
}

struct Feature {
  const char* code;
  const char* what;
  Reading<bool> MachineFacts::*fact;
  Health without;
  const char* cost;
  const char* remedy;
};

constexpr auto kFeatures = std::to_array<Feature>({
    {"pidfd-open", "pidfd_open", &MachineFacts::pidfd_open, Health::missing, "nothing can be ended safely",
     "Linux 5.3 or newer"},
    {"pidfd-send-signal", "pidfd_send_signal", &MachineFacts::pidfd_signal, Health::missing,
     "nothing can be ended safely", "Linux 5.1 or newer; in a sandbox: allow the call"},
    {"pidfs", "unique inodes of pidfds", &MachineFacts::pidfs, Health::limited,
     "processes are told apart by pid and start time alone, which suffices but for a stepped clock",
     "Linux 6.9 or newer"},
    {"kcmp", "kcmp", &MachineFacts::kcmp, Health::limited,
     "who shares a client cannot be told: groups rest on the process tree alone",
     "a kernel with CONFIG_KCMP; in a sandbox: allow the call"},
    {"descriptor-count", "the size of /proc/PID/fd", &MachineFacts::counts_descriptors, Health::limited,
     "the scan takes longer", "Linux 6.2 or newer"},
    {"cgroup-kill", "cgroup.kill", &MachineFacts::cgroup_kill, Health::limited,
     "a whole control group cannot be ended in one step", "Linux 5.14 or newer with cgroup v2"},
    {"map-files", "/proc/PID/map_files", &MachineFacts::map_files, Health::limited,
     "a mapping of a renamed or foreign node is not recognised", "root, or CAP_CHECKPOINT_RESTORE"},
    {"kernel-stack", "/proc/PID/stack", &MachineFacts::kernel_stack, Health::limited,
     "where a stuck process hangs can only be guessed from its wchan", "root, and a kernel with CONFIG_STACKTRACE"},
});

Check feature(const Feature& each, const MachineFacts& facts) {
  const Reading<bool>& fact = facts.*each.fact;
  if (!fact.known())  // it may well be there: a newer kernel would change nothing
    return {each.code, Health::unknown, fmt::format("{}: could not be tried ({})", each.what, describe(fact.reason())),
            fmt::format("if it is not there: {}", each.cost),
            fmt::format("try again as root on the host; it takes {}", each.remedy)};
  if (*fact) return {each.code, Health::good, fmt::format("{}: works", each.what), {}, {}};
  return {each.code, each.without, fmt::format("{}: does not work", each.what), each.cost, each.remedy};
}

Check yama(const MachineFacts& facts) {
  if (!facts.ptrace_scope.known()) return {"ptrace-scope", Health::good, "Yama restricts nothing", {}, {}};
  const auto finding = fmt::format("kernel.yama.ptrace_scope is {}", *facts.ptrace_scope);
  // It restricts attaching; reading descriptors (PTRACE_MODE_READ) stays as it is but for level 3.
  if (*facts.ptrace_scope < 3) return {"ptrace-scope", Health::good, finding, {}, {}};
  return {"ptrace-scope", Health::limited, finding, "comparing descriptors of two processes may be refused",
          "a lower value, after a reboot"};
}

Check lockdown(const MachineFacts& facts) {
  if (facts.lockdown.empty() || facts.lockdown == "none")
    return {"lockdown", Health::good, "the kernel is not locked down", {}, {}};
  const bool is_confidential = facts.lockdown == "confidentiality";
  return {"lockdown", is_confidential ? Health::limited : Health::good,
          fmt::format("the kernel is locked down: {}", facts.lockdown),
          is_confidential ? "kernel stacks and BPF are not to be had; the scan is complete without them" : "", ""};
}

Check cgroups(const MachineFacts& facts) {
  switch (facts.cgroups) {
    case CgroupLayout::v2:
      return {"cgroup-version", Health::good, "cgroup v2", {}, {}};
    case CgroupLayout::hybrid:
      return {"cgroup-version", Health::good, "cgroup v1 and v2 together", {}, {}};
    case CgroupLayout::v1:
      return {"cgroup-version", Health::limited, "cgroup v1 only",
              "a frozen group keeps even KILL waiting, and a group cannot be ended in one step",
              "boot with systemd.unified_cgroup_hierarchy=1"};
    case CgroupLayout::none:
      break;
  }
  return {"cgroup-version", Health::missing, "no control groups are mounted",
          "units, containers and jobs of holders cannot be named", "mount cgroup2 at /sys/fs/cgroup"};
}

Check driver(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver;
  const std::string state(describe(driver.state));
  if (driver.state == DriverState::ok)
    return {"driver",
            Health::good,
            fmt::format("{} driver {} answers for {}", driver.vendor,
                        driver.version.empty() ? "of unknown version" : driver.version,
                        counted(snapshot.gpus.size(), "GPU", "GPUs")),
            {},
            {}};
  if (snapshot.nodes.empty())
    return {"driver", Health::missing, "no GPU driver and no device nodes here", "there is nothing to look at",
            "load the driver, or pass the GPUs into this container"};
  return {"driver", Health::missing, fmt::format("{}{}{}", state, driver.detail.empty() ? "" : ": ", driver.detail),
          "memory figures and the driver's own list are missing; holders are still found by their descriptors",
          driver.state == DriverState::mismatch ? "reboot, or load the module that the library belongs to"
                                                : "see that libnvidia-ml.so.1 and the device nodes can be used here"};
}

Check nodes(const Snapshot& snapshot) {
  std::string roles;
  for (const auto role : {NodeRole::gpu, NodeRole::ctl, NodeRole::uvm}) {
    std::size_t count = 0;
    for (const auto& node : snapshot.nodes) count += node.role == role ? 1 : 0;
    roles += fmt::format("{}{} {}", roles.empty() ? "" : ", ", count, describe(role));
  }
  if (!snapshot.nodes.empty()) return {"device-nodes", Health::good, "device nodes: " + roles, {}, {}};
  return {"device-nodes", Health::missing, "no device nodes of a GPU driver in /dev", "nothing can be pinned here",
          "nvidia-modprobe makes them; in a container they have to be passed in"};
}

/// Which way the look of this very run went, and whether the faster one is to be had.
Check scan(const DoctorReport& report) {
  const bool by_bpf = report.scan.used == ScanMethod::bpf;
  const auto used = fmt::format("processes are looked at {}: {}", by_bpf ? "by BPF" : "through /proc", report.scan.why);
  if (by_bpf || report.bpf_refused.empty()) return {"scan", Health::good, used, {}, {}};
  return {"scan", Health::limited,
          report.scan.why == report.bpf_refused ? used : fmt::format("{}; BPF: {}", used, report.bpf_refused),
          "the same is seen, but on a machine with many processes it takes longer",
          "root in the first user namespace, Linux 6.2 or newer with BTF, and a build that had clang and bpftool"};
}

Check services(const Snapshot& snapshot) {
  const auto& answered = snapshot.services.answered;
  if (answered.known() && *answered) return {"service-manager", Health::good, "the service manager answers", {}, {}};
  const std::string cost = "whether a service starts its processes again is not known before it does";
  if (answered.known())
    return {"service-manager", Health::limited, "no service manager runs here", cost, "on the host there is one"};
  if (answered.reason() == Unknown::not_asked)
    return {"service-manager",
            Health::unknown,
            "the service manager was not asked: nobody here who holds a GPU is in a service",
            "whether it would answer is not known",
            {}};
  return {"service-manager",
          Health::unknown,
          fmt::format("the service manager was not heard ({})", describe(answered.reason())),
          cost,
          {}};
}

Check policy(const DoctorReport& report) {
  if (!report.policy_error.empty())
    return {"policy", Health::limited, report.policy_error,
            "status, free, wait, why and run do nothing before it is mended",
            "correct the file, or its owner and mode"};
  return {"policy",
          Health::good,
          fmt::format("policy of this machine: {}", counted(report.policy_rules, "rule", "rules")),
          {},
          {}};
}

}  // namespace

std::string_view describe(Health health) noexcept {
  switch (health) {
    case Health::good:
      return "good";
    case Health::limited:
      return "limited";
    case Health::missing:
      return "missing";
    case Health::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<Check> examine(const DoctorReport& report) {
  const MachineFacts& facts = report.facts;
  std::vector<Check> checks = {
      user(facts),
      capability(report, kCapSysPtrace, "CAP_SYS_PTRACE", "descriptors and mappings of other users cannot be read"),
      capability(report, kCapKill, "CAP_KILL", "processes of other users cannot be ended"),
      capability(report, kCapSysAdmin, "CAP_SYS_ADMIN", "mappings and kernel stacks of others may stay hidden"),
      hidepid(facts),
      pid_namespace(facts)};
  for (const auto& each : kFeatures) checks.push_back(feature(each, facts));
  checks.insert(checks.end(), {scan(report), yama(facts), lockdown(facts), cgroups(facts), driver(report.snapshot),
                               nodes(report.snapshot), services(report.snapshot), policy(report)});
  return checks;
}

}  // namespace vacate
