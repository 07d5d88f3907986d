// SPDX-License-Identifier: Apache-2.0
// Policy files: what is read protects somebody and says where it stands; what is refused says in one line why. A file
// only adds to what was there.
#include <algorithm>

#include "config/parse_policy.h"
#include "fuzz.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

constexpr std::string_view kPath = "/etc/vacate/policy.toml";

void check_rule(const PolicyRule& rule) {
  require(rule.exe || rule.uid || rule.unit || rule.cgroup || rule.role, "policy: a rule states something");
  require(rule.source.starts_with(std::string(kPath) + ":"), "policy: a rule says where it stands");
  require(!rule.grace || rule.grace->count() >= 0, "policy: no grace is negative");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto find_user = [](std::string_view name) {
    return name == "root" ? std::optional<uid_t>(0) : std::optional<uid_t>();
  };
  const auto text = as_text(data, size);
  Policy before;
  before.rules.emplace_back().name = "before";
  before.baselines.push_back({"*", mebibytes(7)});
  const auto policy = add_policy(before, {kPath, text}, find_user);
  if (!policy) {
    require(policy.error().code == ErrorCode::malformed, "policy: what cannot be read is malformed");
    require(is_one_clean_line(policy.error().message), "policy: the complaint is one line");
    require(contains(policy.error().message, kPath), "policy: the complaint names the file");
    return 0;
  }
  require(!policy->rules.empty() && policy->rules.front() == before.rules.front(),
          "policy: what was there stays first");
  require(!policy->baselines.empty() && policy->baselines.back() == before.baselines.back(),
          "policy: and is the last word");
  std::for_each(policy->rules.begin() + 1, policy->rules.end(), check_rule);
  return 0;
}
