// SPDX-License-Identifier: Apache-2.0
#include "attribute/policy_rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/pattern.h"
#include "model/origin.h"

namespace vacate {
namespace {

bool fits_exe(const PolicyRule& rule, const Process& process) {
  return !rule.exe || !process.exe.known() || matches_pattern(*rule.exe, *process.exe);
}

bool fits_user(const PolicyRule& rule, const Process& process) {
  return !rule.uid || !process.uid.known() || *process.uid == *rule.uid;
}

// A path of a control group begins with a slash; an empty one was not read.
bool fits_cgroup(const PolicyRule& rule, const Process& process) {
  if (process.cgroup.empty()) return true;
  if (rule.cgroup && !matches_pattern(*rule.cgroup, process.cgroup)) return false;
  if (!rule.unit) return true;
  const auto unit = parse_origin(process.cgroup).unit;
  return unit && matches_pattern(*rule.unit, *unit);
}

bool fits(const PolicyRule& rule, const Process& process, std::optional<HolderRole> role) {
  if (rule.role && (!role || describe(*role) != *rule.role)) return false;
  return fits_exe(rule, process) && fits_user(rule, process) && fits_cgroup(rule, process);
}

bool is_protecting(const PolicyRule& rule) { return rule.forbid || (!rule.term_only && !rule.grace); }

Protection protection_of_rule(const PolicyRule& rule) {
  return {rule.name, fmt::format("{} ({})", rule.detail, rule.source), rule.forbid, rule.source};
}

}  // namespace

std::optional<Protection> with_policy(std::optional<Protection> built_in, const Process& process,
                                      std::optional<HolderRole> role, const Policy& policy) {
  if (built_in && built_in->absolute) return built_in;
  for (const auto& rule : policy.rules)
    if (rule.forbid && fits(rule, process, role)) return protection_of_rule(rule);
  if (built_in) return built_in;
  for (const auto& rule : policy.rules)
    if (is_protecting(rule) && fits(rule, process, role)) return protection_of_rule(rule);
  return std::nullopt;
}

EndingTerms ending_terms(const Process& process, std::optional<HolderRole> role, const Policy& policy) {
  EndingTerms terms;
  for (const auto& rule : policy.rules) {
    if (is_protecting(rule) || !fits(rule, process, role)) continue;
    terms.term_only = terms.term_only || rule.term_only;
    if (rule.grace) terms.grace = std::max(terms.grace.value_or(std::chrono::milliseconds{0}), *rule.grace);
    terms.because.push_back(
        rule.term_only
            ? fmt::format("rule {} lets it be asked and never killed: {} ({})", rule.name, rule.detail, rule.source)
            : fmt::format("rule {} leaves it at least {} s to end: {} ({})", rule.name,
                          static_cast<double>(rule.grace->count()) / 1000, rule.detail, rule.source));
  }
  return terms;
}

}  // namespace vacate
