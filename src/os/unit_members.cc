// SPDX-License-Identifier: Apache-2.0
#include "os/unit_members.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/origin.h"

namespace vacate {
namespace {

struct Member {
  ProcStat stat;
  uid_t uid = 0;
};

/// What can be read of the process if it is in the group. gone: it has ended, or is in another.
Result<Member> read_member(const ProcDirectory& root, pid_t pid, const std::string& control_group) {
  const Error elsewhere{ErrorCode::gone, ""};
  const auto process = root.open(pid);
  if (!process) return process.error();
  const auto cgroup = process->read("cgroup", 65536);
  if (!cgroup) return cgroup.error();
  if (!is_in_cgroup(parse_cgroup(*cgroup), control_group)) return elsewhere;
  const auto stat = process->stat();
  if (!stat) return stat.error();
  if (stat->has_ended()) return elsewhere;
  const auto status = process->status();
  if (!status) return status.error();
  if (!status->effective_uid) return Error{ErrorCode::io, "its user cannot be read"};
  return Member{*stat, *status->effective_uid};
}

class Crowd {
 public:
  Crowd(const std::vector<ProcessKey>& known, const std::map<pid_t, Member>& members) : members_(members) {
    for (const auto& key : known)
      if (const auto at = members.find(key.pid); at != members.end() && at->second.stat.start_ticks == key.start_ticks)
        known_.insert(key.pid);
    for (const pid_t pid : known_) users_.insert(members.at(pid).uid);
  }

  [[nodiscard]] bool is_of_service(pid_t pid) const {
    const auto uid = members_.at(pid).uid;
    return known_.contains(pid) || (descends_from_known(pid) && (uid == 0 || users_.contains(uid)));
  }

 private:
  [[nodiscard]] bool descends_from_known(pid_t pid) const {
    for (std::size_t climbed = 0; climbed < members_.size(); ++climbed) {
      const auto at = members_.find(pid);
      if (at == members_.end()) return false;
      pid = at->second.stat.ppid;
      if (known_.contains(pid)) return true;
    }
    return false;
  }

  const std::map<pid_t, Member>& members_;
  std::set<pid_t> known_;
  std::set<uid_t> users_;
};

}  // namespace

std::optional<std::string> find_newcomer(const ProcDirectory& root, const std::string& control_group,
                                         const std::vector<ProcessKey>& known) {
  DirectoryReader reader;
  const auto pids = list_numbers(root, reader);
  if (!pids) return fmt::format("who is in it cannot be listed: {}", pids.error().message);
  std::map<pid_t, Member> members;
  for (const pid_t pid : *pids) {
    const auto member = read_member(root, pid, control_group);
    if (member) members.emplace(pid, *member);
    if (!member && member.error().code != ErrorCode::gone)
      return fmt::format("whether process {} is in it cannot be read: {}", pid, member.error().message);
  }
  const Crowd crowd(known, members);
  for (const auto& [pid, member] : members)
    if (!crowd.is_of_service(pid)) return fmt::format("process {} has come into it since the plan", pid);
  return std::nullopt;
}

}  // namespace vacate
