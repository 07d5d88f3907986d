// SPDX-License-Identifier: Apache-2.0
// The first plan of `free`: decide for each holder, take those that must go together, put them in order. See the
// headers of the parts.
#include "plan/plan_free.h"

#include "plan/assemble.h"
#include "plan/closure.h"
#include "plan/kinship.h"
#include "plan/ladder.h"
#include "plan/selection.h"
#include "plan/thaw.h"
#include "plan/units.h"

namespace vacate {

Result<Plan> plan_free(const Snapshot& snapshot, const Attribution& attribution, const FreeRequest& request) {
  const Selector selector(snapshot, request);
  if (auto checked = selector.check(attribution); !checked) return checked.error();
  const Kinship kinship(snapshot, attribution);
  Decisions decisions;
  for (const auto& holder : attribution.holders) {
    auto choice = selector.choose(holder);
    if (choice.end || choice.refusal) decisions.choices.emplace(holder.key.pid, std::move(choice));
  }
  if (request.stop_units) choose_units(snapshot, attribution, kinship, selector, decisions);
  close_over_clients(snapshot, attribution, kinship, selector, decisions);
  auto rungs = arrange(snapshot, kinship, selector, decisions, request);
  choose_thaws(snapshot, request, kinship, rungs, decisions);
  return assemble(snapshot, kinship, selector, decisions, rungs);
}

}  // namespace vacate
