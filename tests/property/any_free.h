// SPDX-License-Identifier: Apache-2.0
// What somebody may ask of `free` on a machine made at random, and under which policy.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "any_machine.h"
#include "model/holder.h"
#include "model/policy.h"

namespace vacate::testing {

inline std::vector<ProcessSelector> some_of(const Attribution& attribution, int one_in_n) {
  std::vector<ProcessSelector> selected;
  for (const auto& holder : attribution.holders) {
    if (one_in(one_in_n)) selected.push_back({holder.key.pid, std::nullopt});
  }
  return selected;
}

inline FreeRequest any_request(const Attribution& attribution) {
  FreeRequest request;
  request.scope = static_cast<Scope>(below(3));
  if (one_in(3)) {
    request.selection.all_gpus = false;
    for (unsigned i = 0; i < kGpus; ++i) {
      if (one_in(2)) request.selection.gpus.push_back(i);
    }
  }
  if (one_in(4)) request.selection.pids = some_of(attribution, 3);
  if (one_in(3)) request.even = some_of(attribution, 2);
  if (one_in(5)) request.selection.users = {0};
  request.stop_units = one_in(3);
  request.thaw = one_in(4);
  request.term_only = !request.stop_units && one_in(6);
  return request;
}

inline PolicyRule any_rule() {
  static const std::vector<std::string> kPatterns = {"/lab/*", "/usr/*", "*Xorg", "/usr/bin/bash", "*"};
  static const std::vector<std::string> kRoles = {"context", "inheritor", "files", "importer"};
  PolicyRule rule;
  rule.name = "rule" + std::to_string(below(1000));
  rule.source = "p.toml:1";
  rule.uid = one_in(2) ? 0U : 1000U;
  if (one_in(2)) rule.uid.reset();
  if (one_in(2) || !rule.uid) rule.exe = kPatterns[static_cast<std::size_t>(below(static_cast<int>(kPatterns.size())))];
  if (one_in(5)) rule.role = kRoles[static_cast<std::size_t>(below(static_cast<int>(kRoles.size())))];
  rule.forbid = one_in(4);
  rule.term_only = !rule.forbid && one_in(4);
  if (!rule.forbid && !rule.term_only && one_in(3)) rule.grace = std::chrono::milliseconds(below(100000));
  return rule;
}

inline Policy any_policy() {
  Policy policy;
  for (int i = below(3); i > 0 && one_in(2); --i) policy.rules.push_back(any_rule());
  if (one_in(3))
    policy.baselines.push_back({one_in(2) ? "*" : "1", mebibytes(static_cast<std::uint64_t>(below(4000)))});
  return policy;
}

inline Snapshot any_scan() {
  auto scan = any_snapshot();
  if (one_in(8)) scan.hidden_references = {{100, HiddenKind::in_flight, 4, 1, ""}};
  return scan;
}

}  // namespace vacate::testing
