// SPDX-License-Identifier: Apache-2.0
#include "app/agreed_free.h"

#include <algorithm>

#include "base/text.h"
#include "os/trusted_file.h"
#include "report/plan_json.h"

namespace vacate {
namespace {

/// Not the same process any more, and the reviewed plan can say so: a name for nobody is no mistake then.
bool is_past(const ProcessSelector& wanted, const Look& look, const Plan& reviewed) {
  const auto step = std::find_if(reviewed.steps.begin(), reviewed.steps.end(),
                                 [&](const Step& each) { return wanted.matches(each.key); });
  if (step == reviewed.steps.end()) return false;
  const auto* process = look.scan.snapshot.find(wanted.pid);
  return process == nullptr || !is_same_process(process->key, step->key) ||
         look.attribution.find(wanted.pid) == nullptr;
}

/// A list that becomes empty would mean everybody: false, nobody is left to be meant.
bool forget_past(std::vector<ProcessSelector>& named, const Look& look, const Plan& reviewed) {
  if (named.empty()) return true;
  std::erase_if(named, [&](const ProcessSelector& wanted) { return is_past(wanted, look, reviewed); });
  return !named.empty();
}

}  // namespace

Result<Plan> load_plan(const std::string& path) {
  const auto text = read_trusted_file(path, TrustedOwner::root_or_caller);
  if (!text && text.error().code == ErrorCode::refused) return text.error().within("--plan");
  if (!text) return Error{ErrorCode::malformed, "--plan: " + text.error().message};
  auto plan = parse_plan_json(*text);
  if (!plan) return plan.error().within("--plan " + printable(path, 256));
  return plan;
}

Result<PreparedFree> prepare_agreed(Look look, const std::vector<std::string>& gpu_words, FreeRequest request,
                                    Deadline::Clock::time_point started, const Plan& reviewed, Newcomers newcomers) {
  Plan here;
  here.boot_id = look.scan.snapshot.host.boot_id;
  here.pid_namespace = look.scan.snapshot.host.pid_namespace;
  if (auto same = check_same_machine(reviewed, here); !same) return same.error();
  const auto named = request.selection.pids;
  const bool has_somebody = forget_past(request.selection.pids, look, reviewed);
  static_cast<void>(forget_past(request.even, look, reviewed));
  auto prepared = prepare_free(std::move(look), gpu_words, std::move(request), started);
  if (!prepared) return prepared;
  if (!has_somebody) {
    prepared->request.selection.pids = named;
    prepared->plan = here;
  }
  auto agreement = agree(reviewed, prepared->plan, prepared->before.snapshot, prepared->before.attribution, newcomers);
  prepared->decided = std::move(agreement.decided);
  prepared->aside = std::move(agreement.aside);
  replace_plan(*prepared, std::move(agreement.plan));
  return prepared;
}

}  // namespace vacate
