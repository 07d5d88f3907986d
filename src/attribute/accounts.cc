// SPDX-License-Identifier: Apache-2.0
#include "attribute/accounts.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace vacate {
namespace {

// What is known of the driver's rows for one GPU: the sum of the known ones, and whether any is not.
struct ChargedSum {
  Bytes known;
  bool all_known = true;
};

ChargedSum sum_of(const std::vector<DriverCharge>& charges, unsigned gpu) {
  ChargedSum sum;
  for (const auto& charge : charges) {
    if (charge.gpu != gpu) continue;
    if (charge.memory.known())
      sum.known += *charge.memory;
    else
      sum.all_known = false;
  }
  return sum;
}

const HolderOnGpu* on_gpu(const Holder& holder, unsigned gpu) {
  const auto at = std::find_if(holder.gpus.begin(), holder.gpus.end(),
                               [&](const HolderOnGpu& entry) { return entry.index == gpu; });
  return at == holder.gpus.end() ? nullptr : &*at;
}

const ConfiguredBaseline* configured_for(const Gpu& gpu, const Policy& policy) {
  const auto at = std::find_if(policy.baselines.begin(), policy.baselines.end(), [&](const ConfiguredBaseline& each) {
    return each.gpu == "*" || names_gpu(each.gpu, gpu);
  });
  return at == policy.baselines.end() ? nullptr : &*at;
}

// A lone control file or a file in flight could be a client's last reference: then a figure that stays may be memory.
bool could_be_held_unseen(const Snapshot& snapshot, const std::vector<Holder>& holders) {
  return !snapshot.hidden_references.empty() || std::any_of(holders.begin(), holders.end(), may_hold_unseen);
}

// The part of `used` that nobody owns up to, as far as an idle card plausibly uses it; only where everything was seen.
Reading<Baseline> assumed_baseline(const Snapshot& snapshot, const Gpu& gpu, const std::vector<Holder>& holders,
                                   const Policy& policy) {
  if (!gpu.memory.used.known()) return gpu.memory.used.reason();
  if (!snapshot.visibility.all_references || snapshot.driver.state != DriverState::ok) return Unknown::not_asked;
  if (could_be_held_unseen(snapshot, holders)) return Unknown::implausible;
  const auto charged = sum_of(snapshot.charges, gpu.index);
  const bool is_held = std::any_of(holders.begin(), holders.end(),
                                   [&](const Holder& holder) { return on_gpu(holder, gpu.index) != nullptr; });
  if (!charged.all_known && is_held) return Unknown::not_supported;
  return Baseline{std::min(*gpu.memory.used - charged.known, policy.largest_assumed_baseline), BaselineSource::assumed};
}

Reading<Bytes> remainder_of(const Gpu& gpu, const GpuAccount& account, bool all_attributed) {
  if (!gpu.memory.used.known()) return gpu.memory.used.reason();
  if (!account.baseline.known()) return account.baseline.reason();
  if (!all_attributed) return Unknown::not_supported;
  return *gpu.memory.used - account.attributed - account.baseline->amount;
}

std::string_view detail_of(const Opener& opener) {
  switch (opener.fate) {
    case OpenerFate::dead:
      return opener.inheritors.empty() ? "that process is dead, and nobody who could keep its client was seen"
                                       : "that process is dead; its client lives until the last of its inheritors ends";
    case OpenerFate::replaced:
      return "the number belongs to another process now, which holds no GPU";
    case OpenerFate::exiting:
      return "that process is exiting: its memory is being released";
    case OpenerFate::unreadable:
      return "that process lives, but what it holds could not be read";
    case OpenerFate::unseen:
      return "no process seen here has that number: it ended, or it is hidden or in another pid namespace";
    case OpenerFate::no_process_id:
      return "no process can have that number";
  }
  return "";
}

}  // namespace

std::vector<GpuAccount> accounts_of(const Snapshot& snapshot, const Charges& charges,
                                    const std::vector<Holder>& holders, const Policy& policy, const Baselines& known) {
  std::vector<GpuAccount> accounts;
  for (const auto& gpu : snapshot.gpus) {
    GpuAccount account;
    account.index = gpu.index;
    bool all_attributed = true;
    for (const auto& holder : holders) {
      if (on_gpu(holder, gpu.index) == nullptr) continue;
      account.holders.push_back(holder.key.pid);
      const auto sum = sum_of(charges.of(holder.key.pid), gpu.index);
      account.attributed += sum.known;
      all_attributed = all_attributed && sum.all_known;
    }
    const auto* configured = configured_for(gpu, policy);
    const auto baseline = known.find(gpu.index);
    if (configured != nullptr)
      account.baseline = Baseline{configured->amount, BaselineSource::configured};
    else
      account.baseline = baseline != known.end() ? Reading<Baseline>(baseline->second)
                                                 : assumed_baseline(snapshot, gpu, holders, policy);
    account.remainder = remainder_of(gpu, account, all_attributed);
    accounts.push_back(std::move(account));
  }
  return accounts;
}

bool has_unowned_memory(const Gpu& gpu, const GpuAccount& account, const Policy& policy) {
  if (account.remainder.known()) return *account.remainder > policy.memory_tolerance;
  if (!gpu.memory.used.known() || account.baseline.known()) return false;
  return *gpu.memory.used - account.attributed > policy.largest_assumed_baseline + policy.memory_tolerance;
}

bool may_hold_unseen(const Holder& holder) noexcept {
  if (!holder.gpus.empty() || holder.common.empty()) return false;
  return !holder.protection || !holder.protection->source.empty() || holder.protection->rule == "importer";
}

std::vector<UntiedCharge> untied_charges(const Charges& charges) {
  std::vector<UntiedCharge> rows;
  for (const auto& opener : charges.openers()) {
    for (const auto& charge : opener.charges)
      rows.push_back({charge.gpu, opener.pid, charge.memory, std::string(detail_of(opener)), opener.inheritors});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const UntiedCharge& a, const UntiedCharge& b) {
    return std::tie(a.gpu, a.driver_pid) < std::tie(b.gpu, b.driver_pid);
  });
  return rows;
}

}  // namespace vacate
