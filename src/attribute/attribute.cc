// SPDX-License-Identifier: Apache-2.0
// Puts the parts together: who holds (census), in what way (roles), together with whom (groups), whose it is
// (standing), who is spared (protection), and what it comes to (accounts). No judgement is made here.
#include "attribute/attribute.h"

#include <algorithm>

#include "attribute/accounts.h"
#include "attribute/census.h"
#include "attribute/charges.h"
#include "attribute/explain.h"
#include "attribute/groups.h"
#include "attribute/origins.h"
#include "attribute/policy_rules.h"
#include "attribute/protection.h"
#include "attribute/reset_blockers.h"
#include "attribute/roles.h"
#include "attribute/standing.h"
#include "attribute/supervisors.h"
#include "model/origin.h"

namespace vacate {
namespace {

constexpr std::string_view kFilesOnly = "it has device files open only: no context, no memory";

constexpr std::string_view kImporter =
    "it has control files alone, and memory is in use that nothing else accounts for: it may keep what another process "
    "exported";

bool is_resource_tracker(const Process& process) {
  if (!process.argv.known()) return false;
  const auto& argv = *process.argv;
  for (std::size_t i = 0; i + 1 < argv.size(); ++i) {
    if (argv[i] != "-c") continue;
    // The two names that Python gave it: resource_tracker since 3.8, semaphore_tracker before.
    return argv[i + 1].find("multiprocessing.resource_tracker import main") != std::string::npos ||
           argv[i + 1].find("multiprocessing.semaphore_tracker import main") != std::string::npos;
  }
  return false;
}

bool is_mps_client(const Charges& charges, pid_t pid) {
  const auto& rows = charges.of(pid);
  return std::any_of(rows.begin(), rows.end(), [](const DriverCharge& row) {
    return std::find(row.kinds.begin(), row.kinds.end(), ContextKind::mps) != row.kinds.end();
  });
}

class Attributor {
 public:
  Attributor(const Snapshot& snapshot, const Policy& policy)
      : snapshot_(snapshot),
        policy_(policy),
        census_(snapshot),
        groups_(census_),
        charges_(census_, groups_),
        origins_(census_),
        standings_(census_, groups_, charges_, origins_) {}

  Attribution attribute(const Baselines& known) && {
    for (const auto& [pid, references] : census_.references()) result_.holders.push_back(holder(pid));
    make_groups();
    for (auto& group : result_.groups) settle(group);
    for (auto& holder : result_.holders) protect(holder);
    result_.accounts = accounts_of(snapshot_, charges_, result_.holders, policy_, known);
    explain_accounts();
    result_.charged_to_nobody = untied_charges(charges_);
    note_spared_in_services();
    return std::move(result_);
  }

 private:
  Holder holder(pid_t pid) const {
    Holder holder;
    holder.key.pid = pid;
    holder.role = role_of(census_, charges_, pid, policy_);
    holder.standing = standings_.of(pid);
    holder.because = standings_.because(pid);
    holder.gpus = gpus_of(census_, charges_, pid);
    holder.common = common_evidence_of(census_, pid);
    if (const auto* process = census_.living(pid)) {
      holder.key = process->key;
      if (holder.standing != Standing::leftover) holder.supervisor = supervisor_of(census_, origins_, *process);
      holder.protection = protection_of(*process, snapshot_);
      if (!holder.protection && is_mps_client(charges_, pid)) holder.protection = mps_client_protection();
      if (!holder.protection) {
        if (auto claim = claim_of(*process)) holder.because.push_back(std::move(*claim));
      }
    }
    return holder;
  }

  // What only the role and the files of policies say; the standing is settled by now.
  void protect(Holder& holder) const {
    const auto* process = census_.living(holder.key.pid);
    if (process == nullptr) return;
    if (!holder.protection) {
      const auto pid = holder.key.pid;
      const bool computes = census_.has_uvm(pid) && census_.refers_to_any_gpu(pid) && !charges_.shares_client(pid);
      holder.protection = protection_by_role(*process, {holder.role, holder.standing, serves(pid), computes});
    }
    holder.protection = with_policy(std::move(holder.protection), *process, holder.role, policy_);
    holder.terms = ending_terms(*process, holder.role, policy_);
  }

  bool serves(pid_t pid) const {
    const auto& members = groups_.members(*groups_.group_of(pid));
    return std::any_of(members.begin(), members.end(), [&](pid_t member) {
      const auto* process = census_.living(member);
      return process != nullptr && process->listens;
    });
  }

  void explain_accounts() {
    for (auto& account : result_.accounts) {
      const auto gpu = std::find_if(snapshot_.gpus.begin(), snapshot_.gpus.end(),
                                    [&](const Gpu& each) { return each.index == account.index; });
      account.explanations = explanations_of(*gpu, account, {census_, charges_, result_.holders, policy_});
      account.reset_blockers = reset_blockers_of(account.index, snapshot_, result_.holders);
    }
  }

  Holder& find(pid_t pid) {
    return *std::find_if(result_.holders.begin(), result_.holders.end(),
                         [&](const Holder& h) { return h.key.pid == pid; });
  }

  // Only groups with a holder; numbered in the order of the lowest holder, which is the order in which holders come.
  void make_groups() {
    std::map<std::size_t, std::size_t> number_of;
    for (auto& holder : result_.holders) {
      const auto joined = *groups_.group_of(holder.key.pid);
      const auto [at, is_new] = number_of.emplace(joined, number_of.size() + 1);
      holder.group = at->second;
      if (is_new) result_.groups.push_back(make_group(joined, at->second));
    }
  }

  Group make_group(std::size_t joined, std::size_t id) const {
    Group group;
    group.id = id;
    for (const auto pid : groups_.members(joined)) {
      if (census_.is_holder(pid)) {
        group.holders.push_back(pid);
      } else if (const auto* process = census_.living(pid)) {
        group.relatives.push_back(relative(*process, standings_.of(pid)));
      }
    }
    if (const auto owner = standings_.owner_of(joined)) {
      group.owner = census_.living(*owner)->key;
      group.owner_title = title_of(*census_.living(*owner));
    }
    return group;
  }

  Relative relative(const Process& process, Standing standing) const {
    return {process.key, standing, is_resource_tracker(process),
            with_policy(protection_of(process, snapshot_), process, std::nullopt, policy_),
            ending_terms(process, std::nullopt, policy_)};
  }

  // The scan reads the control groups of everybody in services that start their process again.
  void note_spared_in_services() {
    const auto& units = snapshot_.services.units;
    for (const auto& process : snapshot_.processes) {
      if (process.cgroup.empty() || is_gone(process) || census_.is_holder(process.key.pid)) continue;
      const auto service = parse_origin(process.cgroup).service;
      if (!service ||
          std::none_of(units.begin(), units.end(), [&](const ServiceUnit& unit) { return unit.name == service; }))
        continue;
      auto member = relative(process, Standing::unsure);
      if (member.protection || member.terms.any()) result_.spared_in_services.push_back(std::move(member));
    }
  }

  // Device files alone are no standing for being ended (design.md, Protection): they go only with a group that pins
  // memory.
  void settle(Group& group) {
    const bool pins = std::any_of(group.holders.begin(), group.holders.end(), [&](pid_t pid) {
      return find(pid).pins_memory() && find(pid).standing == Standing::leftover;
    });
    for (const auto pid : group.holders) {
      auto& holder = find(pid);
      if (holder.role == HolderRole::files) holder.because.emplace_back(kFilesOnly);
      if (holder.role == HolderRole::importer) holder.because.emplace_back(kImporter);
      if (!pins && holder.standing == Standing::leftover) holder.standing = Standing::unsure;
    }
    if (!pins) {
      for (auto& relative : group.relatives) {
        if (relative.standing == Standing::leftover) relative.standing = Standing::unsure;
      }
    }
    group.standing = find(group.holders.front()).standing;
    for (const auto pid : group.holders) {
      if (find(pid).standing != group.standing) group.standing = Standing::unsure;
    }
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  Census census_;
  Groups groups_;
  Charges charges_;
  Origins origins_;
  Standings standings_;
  Attribution result_;
};

}  // namespace

Attribution attribute_holders(const Snapshot& snapshot, const Policy& policy, const Baselines& known) {
  return Attributor(snapshot, policy).attribute(known);
}

}  // namespace vacate
