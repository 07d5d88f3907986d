// SPDX-License-Identifier: Apache-2.0
// Who is meant by the request, and who of those may be ended: selectors, scope, protection, ownership (cli.md, free).
// Decides for one process at a time; who has to go together is closure.h, in what order ladder.h.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/holder.h"
#include "model/policy.h"
#include "model/snapshot.h"
#include "plan/kinship.h"

namespace vacate {

/// Why something is not done: `rule` is stable for scripts, `reason` is for people.
struct Refusal {
  std::string rule;
  std::string reason;
};

/// What becomes of a holder: exactly one of: left alone (nothing set), ended, refused.
struct Choice {
  bool end = false;
  std::string rule;  ///< what brought it in: "leftover", "unsure", "live", "named"
  std::optional<Refusal> refusal;
};

/// Is it started again by a service when it ends, and is that to be known?
[[nodiscard]] bool is_restarted_by_unit(const Member& member);

class Selector {
 public:
  Selector(const Snapshot& snapshot, const FreeRequest& request) : snapshot_(&snapshot), request_(&request) {}

  /// malformed for selectors that name nothing there is: see plan_free.h.
  [[nodiscard]] Result<void> check(const Attribution& attribution) const;

  /// Device files alone of a leftover group are no choice of their own: they go like relatives (ladder.h).
  [[nodiscard]] Choice choose(const Holder& holder) const;
  /// The same for a holder that was brought in by one that is ended: nothing, or why it cannot be.
  [[nodiscard]] std::optional<Refusal> obstacle(const Member& member) const;
  /// May it end for the sake of `with`, whose client it shares? It is left over, of the same user, container and job,
  /// the caller's own, or named by a word of its own.
  [[nodiscard]] bool may_come_along(const Holder& other, const Holder& with) const;

  /// The MPS server whose control daemon ends it, for a client of MPS that may be ended; 0: it is ended by signals.
  [[nodiscard]] pid_t mps_server_of(const Member& member) const;

  [[nodiscard]] bool is_named(const ProcessKey& key) const;
  /// See narrowing.h.
  [[nodiscard]] bool is_within(pid_t pid) const;
  /// GPUs that it pins and that the request does not cover, by index.
  [[nodiscard]] std::vector<unsigned> pinned_outside(const Holder& holder) const;

 private:
  [[nodiscard]] std::optional<Refusal> of_mps(const Member& member) const;
  [[nodiscard]] std::optional<Refusal> with_clients(const Member& member) const;
  [[nodiscard]] std::optional<Refusal> consent_lacking(const Member& member, const Process* process) const;
  [[nodiscard]] std::optional<Refusal> refusal_of(const Holder& holder) const;
  [[nodiscard]] std::optional<Refusal> users_unit(const Holder& holder) const;
  [[nodiscard]] bool is_in_scope(const Holder& holder) const;
  [[nodiscard]] bool has_selected_gpu(const Holder& holder) const;
  [[nodiscard]] bool covers(unsigned gpu) const;
  [[nodiscard]] bool cannot_see_others() const;
  [[nodiscard]] std::string namesake(pid_t pid) const;
  [[nodiscard]] Result<void> check_pid(const ProcessSelector& wanted, const Attribution& attribution) const;

  const Snapshot* snapshot_;
  const FreeRequest* request_;
};

/// GPUs whose memory it holds, by index: where it has a context, and wherever it keeps something that is in no list.
/// Device files that a process with a context elsewhere has open as well are none (ranks open every GPU that they see).
[[nodiscard]] std::vector<unsigned> pinned_gpus(const Snapshot& snapshot, const Holder& holder);

}  // namespace vacate
