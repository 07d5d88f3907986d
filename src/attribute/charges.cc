// SPDX-License-Identifier: Apache-2.0
#include "attribute/charges.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "attribute/parentage.h"
#include "attribute/protection.h"
#include "model/process.h"

namespace vacate {
namespace {

OpenerFate fate_of(const Census& census, pid_t pid) {
  const auto& snapshot = census.snapshot();
  if (pid <= 0 || pid > kLargestPid) return OpenerFate::no_process_id;
  const auto* process = snapshot.find(pid);
  if (process == nullptr) return can_call_dead(snapshot) ? OpenerFate::dead : OpenerFate::unseen;
  if (is_gone(*process)) return OpenerFate::dead;
  if (process->exiting || process->condition == Condition::exiting) return OpenerFate::exiting;
  // One with files in flight or in a ring may hold it by those, which nobody can look at.
  const auto& hidden = snapshot.hidden_references;
  const bool hides = std::any_of(hidden.begin(), hidden.end(), [&](const HiddenReference& h) { return h.pid == pid; });
  return snapshot.visibility.all_references && !hides ? OpenerFate::replaced : OpenerFate::unreadable;
}

bool may_have_inheritors(OpenerFate fate) noexcept {
  return fate == OpenerFate::dead || fate == OpenerFate::replaced || fate == OpenerFate::unseen;
}

}  // namespace

bool can_call_dead(const Snapshot& snapshot) noexcept {
  static constexpr std::array<std::string_view, 3> kHiding = {"hidepid", "hidden-process", "proc-unlisted"};
  const auto& spots = snapshot.visibility.blind_spots;
  return snapshot.host.whole_host && std::none_of(spots.begin(), spots.end(), [](const BlindSpot& spot) {
           return std::find(kHiding.begin(), kHiding.end(), spot.code) != kHiding.end();
         });
}

bool can_trust_lists(const Snapshot& snapshot) noexcept {
  const auto& spots = snapshot.visibility.blind_spots;
  return snapshot.driver.state == DriverState::ok &&
         std::none_of(spots.begin(), spots.end(), [](const BlindSpot& spot) {
           return spot.code.starts_with("driver-") || (spot.code.starts_with("list-") && spot.code != "list-rubbish");
         });
}

Charges::Charges(const Census& census, const Groups& groups) : census_(&census), groups_(&groups) {
  std::map<pid_t, std::vector<DriverCharge>> untied;
  for (const auto& charge : census.snapshot().charges)
    (census.is_holder(charge.pid) ? tied_ : untied)[charge.pid].push_back(charge);
  for (auto* rows : {&tied_, &untied}) {
    for (auto& [pid, list] : *rows)
      std::stable_sort(list.begin(), list.end(),
                       [](const DriverCharge& a, const DriverCharge& b) { return a.gpu < b.gpu; });
  }
  for (auto& [pid, list] : untied) openers_.push_back({pid, fate_of(census, pid), std::move(list), {}});
  for (auto& opener : openers_) find_inheritors(opener);
}

const std::vector<DriverCharge>& Charges::of(pid_t holder) const noexcept {
  static const std::vector<DriverCharge> kNone;
  const auto at = tied_.find(holder);
  return at == tied_.end() ? kNone : at->second;
}

bool Charges::shares_client(pid_t holder) const noexcept {
  const auto& clients = census_->snapshot().shared_clients;
  return std::any_of(clients.begin(), clients.end(), [&](const std::vector<pid_t>& client) {
    return std::find(client.begin(), client.end(), holder) != client.end();
  });
}

bool Charges::shares_with_charged(pid_t holder) const noexcept {
  const auto& clients = census_->snapshot().shared_clients;
  return std::any_of(clients.begin(), clients.end(), [&](const std::vector<pid_t>& client) {
    return std::find(client.begin(), client.end(), holder) != client.end() &&
           std::any_of(client.begin(), client.end(), [&](pid_t other) { return other != holder && is_charged(other); });
  });
}

bool Charges::could_refer_to_client_of(pid_t holder, const Opener& opener) const noexcept {
  // A lone nvidia-uvm file keeps the opener's whole address space (facts.md 2.2.5) and tells nothing of the GPU.
  if (!census_->refers_to_any_gpu(holder)) return census_->has_uvm(holder);
  return std::any_of(opener.charges.begin(), opener.charges.end(),
                     [&](const DriverCharge& charge) { return census_->refers_to_gpu(holder, charge.gpu); });
}

// How likely it is that this uncharged holder inherited the opener's client: 0 not at all, 3 most. Opening a GPU's file
// is not enough: monitors do that too, so beside a dead charge they must not be taken for inheritors.
unsigned Charges::plausibility(pid_t holder, const Opener& opener) const {
  const auto* process = census_->living(holder);
  if (process == nullptr || is_charged(holder) || !could_refer_to_client_of(holder, opener)) return 0;
  if (!census_->looks_like_compute(holder)) return 0;
  if (process->pgid == opener.pid || process->sid == opener.pid) return 3;
  if (shares_with_charged(holder) || protection_of(*process, census_->snapshot())) return 0;
  const auto* top = census_->living(groups_->topmost_of(holder));
  const bool orphaned =
      top != nullptr && !is_with_its_creator(*census_, *top) && !is_led_by_living_ancestor(*census_, *top);
  const bool set_up_to_stay = process->pgid == holder;
  if (orphaned && (!set_up_to_stay || shares_client(holder))) return 3;
  return orphaned ? 2 : 1;  // 1: the descriptor was passed to it over a socket
}

void Charges::find_inheritors(Opener& opener) const {
  if (!may_have_inheritors(opener.fate)) return;
  unsigned best = 1;
  for (const auto& [pid, references] : census_->references()) {
    const auto likely = plausibility(pid, opener);
    if (likely < best) continue;
    if (likely > best) opener.inheritors.clear();
    best = likely;
    opener.inheritors.push_back(pid);
  }
}

}  // namespace vacate
