// SPDX-License-Identifier: Apache-2.0
#define JSON_NOEXCEPTION
#include "report/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace vacate {
namespace {

Check check_of(const DoctorReport& report, const std::string& code) {
  for (auto& check : examine(report))
    if (check.code == code) return check;
  ADD_FAILURE() << "no check " << code;
  return {};
}

DoctorReport healthy() {
  DoctorReport report;
  report.version = "0.1.0";
  auto& facts = report.facts;
  facts.capabilities = ~std::uint64_t{0};
  facts.proc_shows_host = true;
  for (auto* fact : {&facts.pidfd_open, &facts.pidfd_signal, &facts.pidfs, &facts.kcmp, &facts.counts_descriptors,
                     &facts.cgroup_kill, &facts.map_files, &facts.kernel_stack})
    *fact = true;
  facts.cgroups = CgroupLayout::v2;
  report.snapshot.driver = {"nvidia", "580.95.05", DriverState::ok, ""};
  report.snapshot.nodes.push_back({NodeRole::gpu, "/dev/nvidia0", 0, 1, 0, 0});
  report.snapshot.services.answered = true;
  return report;
}

TEST(Doctor, AHealthyMachineCostsNothing) {
  for (const auto& check : examine(healthy())) {
    EXPECT_EQ(check.health, Health::good) << check.code;
    EXPECT_EQ(check.cost + check.remedy, "") << check.code;
  }
}

TEST(Doctor, TellsOfAPolicyFileThatStopsTheCommands) {
  auto report = healthy();
  report.policy_rules = 1;
  EXPECT_EQ(check_of(report, "policy").finding, "policy of this machine: 1 rule");
  EXPECT_NE(check_of(report, "driver").finding.find("answers for 0 GPUs"), std::string::npos);
  report.policy_error = "policy: /etc/vacate/policy.toml:4: unknown key 'exec'";
  EXPECT_EQ(check_of(report, "policy").health, Health::limited);
  EXPECT_EQ(check_of(report, "policy").finding, report.policy_error);
}

TEST(Doctor, SaysHowProcessesAreLookedAt) {
  auto report = healthy();
  report.scan = {ScanMethod::procfs, "so few"};
  EXPECT_EQ(check_of(report, "scan").finding, "processes are looked at through /proc: so few");
  EXPECT_EQ(check_of(report, "scan").health, Health::good);
  report.bpf_refused = "the kernel takes no BPF programs";
  EXPECT_EQ(check_of(report, "scan").health, Health::limited);
  EXPECT_EQ(check_of(report, "scan").finding,
            "processes are looked at through /proc: so few; BPF: the kernel takes no BPF programs");
  report.scan.why = report.bpf_refused;
  EXPECT_EQ(check_of(report, "scan").finding,
            "processes are looked at through /proc: the kernel takes no BPF programs");
  report = healthy();
  report.scan = {ScanMethod::bpf, "it is there"};
  EXPECT_EQ(check_of(report, "scan").finding, "processes are looked at by BPF: it is there");
}

TEST(Doctor, AManagerThatNobodyNeededIsNotSilent) {
  auto report = healthy();
  report.snapshot.services.answered = Unknown::not_asked;
  EXPECT_EQ(check_of(report, "service-manager").health, Health::unknown);
  EXPECT_EQ(check_of(report, "service-manager").finding,
            "the service manager was not asked: nobody here who holds a GPU is in a service");
  report.snapshot.services.answered = Unknown::timed_out;
  EXPECT_TRUE(check_of(report, "service-manager").finding.starts_with("the service manager was not heard ("));
}

TEST(Doctor, WhatCouldNotBeTriedIsNotMissing) {
  auto report = healthy();
  report.facts.cgroup_kill = Unknown::not_supported;
  const auto check = check_of(report, "cgroup-kill");
  EXPECT_EQ(check.health, Health::unknown);
  EXPECT_TRUE(check.cost.starts_with("if it is not there: ")) << check.cost;
  EXPECT_TRUE(check.remedy.starts_with("try again as root")) << check.remedy;
}

TEST(Doctor, EveryGapHasItsPriceAndItsWayOut) {
  const struct {
    const char* code;
    Health health;
    void (*spoil)(DoctorReport&);
  } kTable[] = {
      {"root", Health::limited, [](DoctorReport& r) { r.facts.uid = 1000; }},
      {"capability-CAP_SYS_PTRACE", Health::limited, [](DoctorReport& r) { r.facts.capabilities = std::uint64_t{0}; }},
      {"capability-CAP_KILL", Health::limited, [](DoctorReport& r) { r.facts.capabilities = std::uint64_t{1} << 19U; }},
      {"hidepid", Health::limited,
       [](DoctorReport& r) {
         r.facts.capabilities = std::uint64_t{0};
         r.facts.hides_processes = true;
       }},
      {"pid-namespace", Health::limited, [](DoctorReport& r) { r.facts.proc_shows_host = false; }},
      {"pidfd-open", Health::missing, [](DoctorReport& r) { r.facts.pidfd_open = false; }},
      {"kcmp", Health::limited, [](DoctorReport& r) { r.facts.kcmp = false; }},
      {"cgroup-kill", Health::unknown, [](DoctorReport& r) { r.facts.cgroup_kill = Unknown::not_supported; }},
      {"ptrace-scope", Health::limited, [](DoctorReport& r) { r.facts.ptrace_scope = 3U; }},
      {"cgroup-version", Health::limited, [](DoctorReport& r) { r.facts.cgroups = CgroupLayout::v1; }},
      {"driver", Health::missing, [](DoctorReport& r) { r.snapshot.driver.state = DriverState::mismatch; }},
      {"device-nodes", Health::missing, [](DoctorReport& r) { r.snapshot.nodes.clear(); }},
      {"service-manager", Health::limited, [](DoctorReport& r) { r.snapshot.services.answered = false; }},
  };
  for (const auto& row : kTable) {
    DoctorReport report = healthy();
    row.spoil(report);
    const Check check = check_of(report, row.code);
    EXPECT_EQ(check.health, row.health) << row.code;
    EXPECT_FALSE(check.cost.empty()) << row.code;
    EXPECT_FALSE(check.remedy.empty()) << row.code;
  }
}

TEST(Doctor, HiddenProcessesCostNothingToWhoMayLookIntoAll) {
  DoctorReport report = healthy();
  report.facts.hides_processes = true;
  EXPECT_EQ(check_of(report, "hidepid").health, Health::good);
}

TEST(Doctor, FitsTheLineAndIsValidJson) {
  DoctorReport report = healthy();
  report.facts = {};
  report.snapshot.driver = {"nvidia", "5\x1b[2J\xff", DriverState::denied, std::string(300, 'x') + "\n\xe2\x80\xae"};
  const std::string text = render_doctor_text(report, {80, Colour::no});
  for (const auto line : split(text, '\n')) {
    EXPECT_LE(display_width(line), 80U) << line;
    EXPECT_EQ(printable(line), line);
  }
  const auto json = nlohmann::ordered_json::parse(render_doctor_json(report), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["schema"], "vacate.doctor/1");
  EXPECT_EQ(json["checks"].size(), examine(report).size());
}

}  // namespace
}  // namespace vacate
