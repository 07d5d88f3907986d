// SPDX-License-Identifier: Apache-2.0
// Helpers for tests that go from a described machine through attribution to a plan. They state expectations by the
// actors' names.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attribute/attribute.h"
#include "attribute/test_machine.h"
#include "plan/plan_free.h"

namespace vacate::testing {

struct Stages {
  Snapshot snapshot;
  Attribution attribution;

  explicit Stages(const TestMachine& machine) : Stages(machine.snapshot()) {}
  explicit Stages(Snapshot scan) : snapshot(std::move(scan)), attribution(attribute_holders(snapshot, Policy{})) {}

  [[nodiscard]] Plan plan(const FreeRequest& request = {}) const {
    auto made = plan_free(snapshot, attribution, request);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : Plan{};
  }
  [[nodiscard]] const Holder& holder(pid_t pid) const {
    static const Holder kNone;
    const auto* found = attribution.find(pid);
    EXPECT_NE(found, nullptr) << pid << " is no holder";
    return found != nullptr ? *found : kNone;
  }
};

inline std::set<pid_t> ended(const Plan& plan) {
  std::set<pid_t> pids;
  for (const auto& step : plan.steps) {
    if (step.action == Action::signal) pids.insert(step.key.pid);
  }
  return pids;
}

inline std::set<pid_t> refused(const Plan& plan) {
  std::set<pid_t> pids;
  for (const auto& step : plan.steps) {
    if (step.action == Action::refuse) pids.insert(step.key.pid);
  }
  return pids;
}

inline const Step& step_of(const Plan& plan, pid_t pid) {
  static const Step kNone;
  for (const auto& step : plan.steps) {
    if (step.key.pid == pid) return step;
  }
  ADD_FAILURE() << "no step for " << pid;
  return kNone;
}

/// "tp" and 2: the pids of tp0 and tp1; a name without number: its own.
inline std::set<pid_t> pids(const TestMachine& machine, const std::vector<std::string>& names) {
  std::set<pid_t> found;
  for (const auto& name : names) found.insert(machine.pid_of(name));
  return found;
}

inline std::vector<std::string> numbered(const std::string& name, unsigned count, std::vector<std::string> more = {}) {
  for (unsigned i = 0; i < count; ++i) more.push_back(name + std::to_string(i));
  return more;
}

inline FreeRequest with_gpus(std::vector<unsigned> gpus, Scope scope = Scope::leftovers) {
  FreeRequest request;
  request.scope = scope;
  request.selection.gpus = std::move(gpus);
  request.selection.all_gpus = false;
  return request;
}

inline FreeRequest with_scope(Scope scope) {
  FreeRequest request;
  request.scope = scope;
  return request;
}

inline FreeRequest naming(pid_t pid, bool even = false) {
  FreeRequest request;
  request.selection.pids = {{pid, std::nullopt}};
  if (even) request.even = {{pid, std::nullopt}};
  return request;
}

}  // namespace vacate::testing
