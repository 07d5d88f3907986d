// SPDX-License-Identifier: Apache-2.0
// What the driver charges to whom, tied to holders where it can be (facts.md 1.7). The driver names the process that
// made a client, which may be dead while others keep the client alive, or whose number may be somebody innocent's by
// now: a hint, never a reason to signal.
#pragma once

#include <map>
#include <vector>

#include "attribute/census.h"
#include "attribute/groups.h"

namespace vacate {

/// What became of a charged process that is no holder.
enum class OpenerFate {
  dead,           ///< it ended
  replaced,       ///< a process has its number and holds nothing, although everything can be read
  exiting,        ///< it is releasing what it had (facts.md 2.3): no ghost
  unreadable,     ///< it lives, and what it holds could not be read
  unseen,         ///< nobody here has the number, and not everybody can be seen: another pid namespace, hidepid
  no_process_id,  ///< no process can have this number
};

struct Opener {
  pid_t pid = 0;
  OpenerFate fate = OpenerFate::dead;
  std::vector<DriverCharge> charges;  ///< by GPU
  /// Holders without a charge of their own that plausibly keep its client alive, sorted. A suspicion: see proofs.h for
  /// what is proof.
  std::vector<pid_t> inheritors;
};

class Charges {
 public:
  Charges(const Census& census, const Groups& groups);

  /// Rows of the driver's lists for this holder, by GPU; empty where it charges it nothing.
  [[nodiscard]] const std::vector<DriverCharge>& of(pid_t holder) const noexcept;
  [[nodiscard]] bool is_charged(pid_t holder) const noexcept { return !of(holder).empty(); }
  /// Charged processes that are no holders, by pid.
  [[nodiscard]] const std::vector<Opener>& openers() const noexcept { return openers_; }
  /// Does it share an open file description with a holder that is charged?
  [[nodiscard]] bool shares_with_charged(pid_t holder) const noexcept;
  [[nodiscard]] bool shares_client(pid_t holder) const noexcept;

 private:
  void find_inheritors(Opener& opener) const;
  [[nodiscard]] bool could_refer_to_client_of(pid_t holder, const Opener& opener) const noexcept;
  [[nodiscard]] unsigned plausibility(pid_t holder, const Opener& opener) const;

  const Census* census_;
  const Groups* groups_;
  std::map<pid_t, std::vector<DriverCharge>> tied_;
  std::vector<Opener> openers_;
};

/// Are pids of the driver this machine's own, and would a process with such a number be seen? Not in a container, not
/// with hidepid.
[[nodiscard]] bool can_call_dead(const Snapshot& snapshot) noexcept;

/// Were the driver's lists read, and in full? Who is in none of them has no context then. Blind spots of the driver are
/// not told apart by GPU: any of them leaves every list in doubt.
[[nodiscard]] bool can_trust_lists(const Snapshot& snapshot) noexcept;

}  // namespace vacate
