// SPDX-License-Identifier: Apache-2.0
// A file that --plan names: whatever is in it, it brings nobody into a plan.
#include "report/plan_json.h"
#include "fuzz.h"
#include "plan/agreement.h"

#include <set>

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = parse_plan_json(as_text(data, size));
  if (!plan) {
    require(is_one_clean_line(plan.error().message), "plan: the complaint is one line");
    return 0;
  }
  std::set<pid_t> pids;
  for (std::size_t i = 0; i < plan->steps.size(); ++i) {
    const auto& step = plan->steps[i];
    require(step.n == i + 1 && step.key.pid > 0, "plan: steps are numbered, processes have pids");
    require(pids.insert(step.key.pid).second, "plan: one step a process");
  }
  const auto agreement = agree(*plan, {}, {}, {}, Newcomers::named);
  require(agreement.plan.steps.size() == plan->steps.size(), "plan: a result for each step of the file");
  require(agreement.decided.size() == plan->steps.size(), "plan: each is decided");
  for (const auto& step : agreement.plan.steps) require(step.action == Action::refuse, "plan: nobody is brought in");
  if (const auto same = check_same_machine(*plan, {}); !same)
    require(is_one_clean_line(same.error().message), "plan: so is the refusal");
  return 0;
}
