// SPDX-License-Identifier: Apache-2.0
#include "plan/units.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "model/origin.h"

namespace vacate {
namespace {

/// One service that is to be stopped, and everybody who would end with it.
class Stop {
 public:
  Stop(const Snapshot& snapshot, const Attribution& attribution, const Kinship& kinship, const Selector& selector,
       Decisions& decisions)
      : snapshot_(snapshot), attribution_(attribution), kinship_(kinship), selector_(selector), decisions_(decisions) {}

  void of(const std::string& name, const std::vector<pid_t>& wanted) {
    auto reason = find_target(name, wanted.front());
    if (!reason) reason = find_bystander();
    const auto is_outside = [&](pid_t pid) { return !is_inside(pid); };
    if (!reason && std::any_of(wanted.begin(), wanted.end(), is_outside))
      reason = "there are two services of that name";
    if (reason) return refuse(wanted, *reason);
    for (const auto& holder : attribution_.holders) {
      if (!is_inside(holder.key.pid)) continue;
      if (!decisions_.ends(holder.key.pid)) decisions_.choices[holder.key.pid] = {true, "same-unit", std::nullopt};
      decisions_.units.emplace(holder.key.pid, target_);
    }
  }

 private:
  using Reason = std::optional<std::string>;

  // The unit as it is now: a stop of anything else than that is none of this plan's.
  Reason find_target(const std::string& name, pid_t member) {
    target_ = {};
    const auto& units = snapshot_.services.units;
    const auto unit =
        std::find_if(units.begin(), units.end(), [&](const ServiceUnit& each) { return each.name == name; });
    const auto* process = snapshot_.find(member);
    const auto* main = unit == units.end() ? nullptr : snapshot_.find(unit->main_pid);
    if (process == nullptr || main == nullptr || is_gone(*main)) return "its main process is not known";
    auto group = control_group_of_unit(process->cgroup, name);
    if (!group || !is_service_of_system(name, process->cgroup)) return "it is no service of the system's own manager";
    target_ = {name, *std::move(group), main->key};
    return std::nullopt;
  }

  // Never a slice, a session or a user's whole manager, whatever attribution said.
  static bool is_service_of_system(const std::string& name, const std::string& cgroup) {
    return name.ends_with(".service") && !name.starts_with("user@") && parse_origin(cgroup).service == name;
  }

  bool is_inside(pid_t pid) const {
    const auto* process = snapshot_.find(pid);
    return process != nullptr && !is_gone(*process) && is_in_cgroup(process->cgroup, target_.control_group);
  }

  // Whoever would end with the service and must not, or was not meant.
  Reason find_bystander() const {
    const auto& own_groups = snapshot_.caller.cgroups;
    if (std::find(own_groups.begin(), own_groups.end(), "") != own_groups.end())
      return "where vacate itself runs cannot be seen";
    for (const auto& own : own_groups)
      if (is_in_cgroup(own, target_.control_group)) return "vacate itself, or who started it, runs in it";
    for (const auto& [pid, member] : kinship_.members()) {
      if (!is_inside(pid)) continue;
      if (auto reason = find_objection(pid, member)) return reason;
    }
    for (const auto& spared : attribution_.spared_in_services) {
      if (!is_inside(spared.key.pid)) continue;
      if (auto reason = find_objection_to_end(spared)) return reason;
    }
    for (const auto& process : snapshot_.processes) {
      if (!is_inside(process.key.pid) || decisions_.ends(process.key.pid)) continue;
      if (auto reason = find_others_work(process)) return reason;
    }
    for (const auto& holder : attribution_.holders) {
      const auto* process = snapshot_.find(holder.key.pid);
      if (process == nullptr || process->cgroup.empty())
        return fmt::format("where process {} belongs cannot be seen", holder.key.pid);
    }
    return std::nullopt;
  }

  static std::string objection_of_policy(pid_t pid) {
    return fmt::format("a policy says how process {} is ended, and a stop of the service does not keep to that", pid);
  }
  static std::string objection_of_rule(pid_t pid, const Protection& protection) {
    return fmt::format("that would end process {} too, which is protected: {}", pid, protection.detail);
  }

  // No holder, and no relative of one: nobody but this asks for those.
  static Reason find_objection_to_end(const Relative& spared) {
    if (spared.protection) return objection_of_rule(spared.key.pid, *spared.protection);
    return spared.terms.any() ? Reason(objection_of_policy(spared.key.pid)) : std::nullopt;
  }

  Reason find_objection(pid_t pid, const Member& member) const {
    const bool is_ended = decisions_.ends(pid);
    if (member.terms().any()) return objection_of_policy(pid);
    if (is_ended && selector_.mps_server_of(member) != 0)
      return fmt::format("process {} is a client of MPS, which the signals of a stop could harm", pid);
    if (is_ended || (member.holder == nullptr && !member.protection())) return std::nullopt;
    if (const auto& protection = member.protection()) return objection_of_rule(pid, *protection);
    const auto obstacle = selector_.obstacle(member);
    const bool is_obstacle = obstacle && obstacle->rule != "restarting-unit";
    if (member.holder->pins_memory() || is_obstacle || !selector_.is_within(pid))
      return fmt::format("that would end process {} too, which holds a GPU and is not meant", pid);
    return std::nullopt;
  }

  // Who holds nothing is in no plan, and is a part of the service: its helpers, whatever they are called. Not so where
  // somebody is at work at a terminal that is not the main process's, or as a user of whom nobody is ended.
  Reason find_others_work(const Process& process) const {
    const auto* main = snapshot_.find(target_.main.pid);
    if (process.tty != 0 && (main == nullptr || process.tty != main->tty))
      return fmt::format("that would end process {} too, which is at work at a terminal", process.key.pid);
    if (!process.uid.known())
      return fmt::format("whose process {}, which it would end too, is unknown", process.key.pid);
    if (*process.uid == 0 || is_user_of_service(*process.uid)) return std::nullopt;
    const auto user = process.user.empty() ? std::to_string(*process.uid) : printable(process.user, 64);
    return fmt::format("that would end process {} of user {} too", process.key.pid, user);
  }

  bool is_user_of_service(uid_t uid) const {
    return std::any_of(snapshot_.processes.begin(), snapshot_.processes.end(), [&](const Process& each) {
      const bool counts = each.key == target_.main || (decisions_.ends(each.key.pid) && is_inside(each.key.pid));
      return counts && each.uid.known() && *each.uid == uid;
    });
  }

  void refuse(const std::vector<pid_t>& wanted, const std::string& reason) {
    const auto& name = kinship_.member(wanted.front())->supervisor()->name;
    for (const auto pid : wanted)
      decisions_.choices[pid] = {
          false, "",
          Refusal{"restarting-unit", fmt::format("its service would start it again, and --stop-units leaves {} alone: "
                                                 "{}; if that is meant: systemctl stop {}",
                                                 name, reason, name)}};
  }

  const Snapshot& snapshot_;
  const Attribution& attribution_;
  const Kinship& kinship_;
  const Selector& selector_;
  Decisions& decisions_;
  UnitTarget target_;
};

}  // namespace

void choose_units(const Snapshot& snapshot, const Attribution& attribution, const Kinship& kinship,
                  const Selector& selector, Decisions& decisions) {
  std::map<std::string, std::vector<pid_t>> wanted;
  for (const auto& [pid, choice] : decisions.choices) {
    const auto* member = kinship.member(pid);
    if (choice.end && member != nullptr && is_restarted_by_unit(*member))
      wanted[member->supervisor()->name].push_back(pid);
  }
  Stop stop(snapshot, attribution, kinship, selector, decisions);
  for (const auto& [name, pids] : wanted) stop.of(name, pids);
}

}  // namespace vacate
