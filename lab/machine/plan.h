// SPDX-License-Identifier: Apache-2.0
// From a case to orders: what each actor and the driver have to be. Pure translation; the refusals of what the machine
// cannot do yet stand here as well, beside what it can.
#pragma once

#include <string>

#include "lab/actor/plan.h"
#include "lab/case/case.h"

namespace lab {

/// Who a user of the machine is.
struct Account {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string name;
  std::string home;
};
[[nodiscard]] Account account_of(User user);

/// PATH, HOME and the like, as NAME=value.
[[nodiscard]] std::vector<std::string> base_environment(User user);

/// Orders of one actor. `exe` stays as the case has it: only the machine knows where its links lead.
[[nodiscard]] ActorPlan plan_actor(const Case& scenario, const ActorSpec& spec);

/// Orders of the machine's own "shell".
[[nodiscard]] ActorPlan plan_shell();

}  // namespace lab
