// SPDX-License-Identifier: Apache-2.0
#include "verify/release_view.h"

#include <algorithm>

#include "attribute/accounts.h"

namespace vacate {
namespace {

bool contains(const std::vector<pid_t>& sorted, pid_t pid) {
  return std::binary_search(sorted.begin(), sorted.end(), pid);
}

void add_charge(EndedShare& share, const Reading<Bytes>& memory) {
  if (!share.charged.known()) return;
  share.charged = memory.known() ? Reading<Bytes>(*share.charged + *memory) : memory;
}

/// Processes of `before` that have ended, by the results of the steps; sorted.
std::vector<pid_t> ended_pids(const Sighting& before, const Plan& plan, const std::vector<StepResult>& results) {
  std::vector<pid_t> pids;
  for (const auto& result : results) {
    if (!has_ended(result.status)) continue;
    const auto step =
        std::find_if(plan.steps.begin(), plan.steps.end(), [&](const Step& each) { return each.n == result.n; });
    if (step == plan.steps.end()) continue;
    const auto* holder = before.attribution.find(step->key.pid);
    if (holder != nullptr && is_same_process(holder->key, step->key)) pids.push_back(step->key.pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

/// Who was to be ended and held nothing at that look already: of a reviewed plan, whoever has ended or let go since it
/// was made. What the driver still charges them is memory that was to come back, whoever keeps it now; sorted.
std::vector<pid_t> absent_pids(const Sighting& before, const std::vector<StepResult>& results) {
  std::vector<pid_t> pids;
  for (const auto& result : results)
    if (has_ended(result.status) && before.attribution.find(result.pid) == nullptr) pids.push_back(result.pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

const GpuAccount* account_of(const Attribution& attribution, unsigned gpu) {
  const auto at = std::find_if(attribution.accounts.begin(), attribution.accounts.end(),
                               [&](const GpuAccount& each) { return each.index == gpu; });
  return at == attribution.accounts.end() ? nullptr : &*at;
}

Reading<Bytes> used_of(const std::vector<Gpu>& gpus, unsigned index) {
  const auto at = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& each) { return each.index == index; });
  return at == gpus.end() ? Reading<Bytes>(Unknown::timed_out) : at->memory.used;
}

Reading<Bytes> baseline_of(const Attribution& attribution, unsigned gpu) {
  const auto* account = account_of(attribution, gpu);
  if (account == nullptr) return Unknown::not_asked;
  return account->baseline.known() ? Reading<Bytes>(account->baseline->amount)
                                   : Reading<Bytes>(account->baseline.reason());
}

/// An nvidiactl file of a process that is neither protected nor has a GPU node open could be a client's last reference;
/// so could whatever a blind spot hides, and whoever the driver charges without our seeing a holder (cli.md, exit code
/// 5).
bool could_be_held_unseen(const Sighting& now, const EndedShare& ended, unsigned gpu) {
  if (!now.snapshot.visibility.complete()) return true;
  const auto& attribution = now.attribution;
  const bool control_file = std::any_of(attribution.holders.begin(), attribution.holders.end(), may_hold_unseen);
  const bool charged = std::any_of(
      attribution.charged_to_nobody.begin(), attribution.charged_to_nobody.end(), [&](const UntiedCharge& charge) {
        return charge.gpu == gpu && charge.inheritors.empty() && !contains(ended.charged_pids, charge.driver_pid) &&
               (!charge.memory.known() || charge.memory->count > 0);
      });
  return control_file || charged;
}

bool is_same_holder(pid_t pid, const Sighting& before, const Sighting& now) {
  const auto* then = before.snapshot.find(pid);
  const auto* holder = now.attribution.find(pid);
  return then != nullptr && holder != nullptr && is_same_process(then->key, holder->key);
}

/// Who of `holders` had an open file of a client in common with somebody who ended: that client lives on.
std::vector<pid_t> keepers_among(const std::vector<pid_t>& holders, const EndedShare& ended, const Sighting& before,
                                 const Sighting& now) {
  std::vector<pid_t> keepers;
  for (const auto pid : holders) {
    const auto& clients = before.snapshot.shared_clients;
    const bool shares = std::any_of(clients.begin(), clients.end(), [&](const std::vector<pid_t>& client) {
      return contains(client, pid) &&
             std::any_of(client.begin(), client.end(), [&](pid_t other) { return contains(ended.pids, other); });
    });
    if (shares && is_same_holder(pid, before, now)) keepers.push_back(pid);
  }
  return keepers;
}

}  // namespace

bool has_ended(StepStatus status) noexcept {
  return status == StepStatus::gone || status == StepStatus::already_gone || status == StepStatus::identity_changed;
}

EndedShare ended_share(const Sighting& before, const Plan& plan, const std::vector<StepResult>& results, unsigned gpu) {
  EndedShare share;
  const auto pids = ended_pids(before, plan, results);
  for (const auto pid : pids) {
    const auto* holder = before.attribution.find(pid);
    for (const auto& place : holder->gpus) {
      if (place.index != gpu) continue;
      share.referenced = true;
      if (holder->pins_memory()) share.pids.push_back(pid);
      share.pinned = !share.pids.empty();
      if (place.memory.known()) {
        add_charge(share, place.memory);
        share.charged_pids.push_back(pid);
      } else if (place.has_context) {
        add_charge(share, place.memory);  // in the list without a figure: nothing can be said about the sum
      }
    }
  }
  const auto absent = absent_pids(before, results);
  for (const auto& charge : before.attribution.charged_to_nobody) {
    const bool all_ended = !charge.inheritors.empty() && std::all_of(charge.inheritors.begin(), charge.inheritors.end(),
                                                                     [&](pid_t pid) { return contains(pids, pid); });
    if (charge.gpu != gpu || (!all_ended && !contains(absent, charge.driver_pid))) continue;
    share.referenced = share.pinned = true;
    add_charge(share, charge.memory);
    share.charged_pids.push_back(charge.driver_pid);
  }
  std::sort(share.charged_pids.begin(), share.charged_pids.end());
  return share;
}

std::vector<pid_t> pinning_holders(const Attribution& attribution, unsigned gpu) {
  std::vector<pid_t> pids;
  const auto* account = account_of(attribution, gpu);
  if (account == nullptr) return pids;
  for (const auto pid : account->holders)
    if (const auto* holder = attribution.find(pid); holder != nullptr && holder->pins_memory()) pids.push_back(pid);
  return pids;
}

ReleaseView view_of(unsigned gpu, const Sighting& before, const EndedShare& ended, const Sighting& now,
                    const DriverFigures& figures) {
  ReleaseView view;
  view.before = used_of(before.snapshot.gpus, gpu);
  view.used = used_of(figures.gpus, gpu);
  view.holders = pinning_holders(now.attribution, gpu);
  view.touched = ended.pinned;
  view.ended_charged = ended.charged;
  view.unseen_possible = could_be_held_unseen(now, ended, gpu);
  view.baseline = baseline_of(before.attribution, gpu);
  const auto* account = account_of(before.attribution, gpu);
  view.baseline_is_assumed =
      account == nullptr || !account->baseline.known() || account->baseline->source == BaselineSource::assumed;
  // Failing a baseline from before, what an unheld GPU uses now is one (design.md, words).
  if (!view.baseline.known() && view.holders.empty() && !view.unseen_possible)
    view.baseline = baseline_of(now.attribution, gpu);
  view.keepers = keepers_among(view.holders, ended, before, now);
  Reading<Bytes> charged = Bytes{0};
  for (const auto& charge : figures.charges) {
    if (charge.gpu != gpu) continue;
    const bool held =
        std::binary_search(view.holders.begin(), view.holders.end(), charge.pid);  // the number may be a new holder's
    if (contains(ended.charged_pids, charge.pid) && !held && view.keepers.empty()) {
      view.ended_still_listed = true;
    } else if (charged.known()) {
      charged = charge.memory.known() ? Reading<Bytes>(*charged + *charge.memory) : charge.memory;
    }
  }
  view.holders_charged = charged;
  return view;
}

}  // namespace vacate
