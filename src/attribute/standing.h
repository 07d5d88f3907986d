// SPDX-License-Identifier: Apache-2.0
// Whose is it: the five tests of design.md section 5, "Standing", in their order, for every group. A wrong `leftover`
// ends somebody's work, so whatever is not known counts against it. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribute/census.h"
#include "attribute/charges.h"
#include "attribute/groups.h"
#include "attribute/origins.h"
#include "model/holder.h"

namespace vacate {

/// What the tests say of one topmost member.
struct TopmostVerdict {
  std::optional<std::string> owned;  ///< test 2: somebody lives who started it
  std::optional<pid_t> owner;        ///< that somebody, where it can be seen
  bool adopted = false;
  bool may_be_main = false;                   ///< of its service: only what is said of that proves anything
  std::vector<std::string> proofs;            ///< test 3: of its owner's death; empty: none
  std::optional<std::string> set_up_to_stay;  ///< test 4: a server that listens
  std::optional<std::string> kept;            ///< test 4: its service, job or container lives
  std::optional<pid_t> keeper;                ///< the main or first process that `kept` speaks of
  std::vector<std::string> open;              ///< what its service, job or container left open
};

class Standings {
 public:
  /// All four must outlive it.
  Standings(const Census& census, const Groups& groups, const Charges& charges, const Origins& origins);

  [[nodiscard]] Standing of(pid_t pid) const;
  /// Sentences, without figures that change from scan to scan.
  [[nodiscard]] std::vector<std::string> because(pid_t pid) const;
  /// Who owns a live group, where that can be said.
  [[nodiscard]] std::optional<pid_t> owner_of(std::size_t group) const;

 private:
  void judge_owners();
  void collect_proofs();
  void judge_servers();
  void hear_origins();
  [[nodiscard]] bool is_owned(std::size_t group) const { return owned_by_.contains(group); }
  [[nodiscard]] std::optional<pid_t> live_topmost(std::size_t group) const;
  [[nodiscard]] std::optional<pid_t> kept_topmost(std::size_t group) const;
  [[nodiscard]] pid_t judged_for(pid_t pid) const;
  [[nodiscard]] bool counts_as_leftover(pid_t pid, std::size_t seen_from_group) const;
  [[nodiscard]] std::vector<std::string> reasons_of_topmost(pid_t top) const;
  [[nodiscard]] std::vector<std::string> what_would_decide(const TopmostVerdict& verdict, const Process& top) const;

  const Census* census_;
  const Groups* groups_;
  const Charges* charges_;
  const Origins* origins_;
  std::map<pid_t, TopmostVerdict> verdicts_;  ///< of every topmost member
  std::map<std::size_t, pid_t> owned_by_;     ///< group -> its lowest member that passes test 2
};

}  // namespace vacate
