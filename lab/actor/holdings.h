// SPDX-License-Identifier: Apache-2.0
// The device references of one actor: its driver clients with their descriptors and mappings, its listening socket and
// the ends of birth pipes. An actor has these and descriptors 0 to 2, nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "lab/actor/plan.h"

namespace lab {

/// One open device node. `what` is "ctl", "uvm" or "gpuN" (N: index).
struct NodeRef {
  std::string what;
  vacate::UniqueFd fd;
};

struct Mapping {
  std::string what;
  void* memory = nullptr;
};

/// References that came from one entry of `holds`.
struct HeldClient {
  HoldPlan plan;  ///< of one that it made itself
  std::vector<NodeRef> nodes;
  std::vector<Mapping> mappings;
};

class Holdings {
 public:
  /// Opens, makes and maps what the plan says, except what a fork brings along.
  [[nodiscard]] vacate::Result<void> acquire(const HoldPlan& plan);
  /// In a fork without exec: keeps of the parent's references what `plan` says, the rest goes.
  [[nodiscard]] vacate::Result<void> keep_inherited(const ActorPlan& plan);
  /// Takes a control file that another process exported.
  [[nodiscard]] vacate::Result<void> take_import(vacate::UniqueFd file, const HoldPlan& plan);
  /// A control file for somebody else: memory of its own that is charged to no process, or, where `plan` has none, an
  /// import of every client of this process (facts.md 2.2.6).
  [[nodiscard]] vacate::Result<vacate::UniqueFd> make_export(const HoldPlan& plan) const;
  /// Ends its MPS contexts: their memory goes, and of their device files new ones without a context stay open.
  [[nodiscard]] vacate::Result<void> end_mps_contexts();
  /// Closes and unmaps all of it: as a server does that is asked to unload.
  void let_go() noexcept;
  /// Some open device file, -1 if there is none. Owned by this.
  [[nodiscard]] int any_descriptor() const noexcept;
  /// A listening TCP socket on loopback.
  [[nodiscard]] vacate::Result<void> listen(std::uint32_t port);

  /// The read end of this process's own birth pipe.
  vacate::UniqueFd birth;
  /// The write ends of its children's.
  std::vector<vacate::UniqueFd> children;

 private:
  [[nodiscard]] vacate::Result<void> place(HeldClient& client, Place where);

  std::vector<HeldClient> clients_;
  std::vector<vacate::UniqueFd> sockets_;
  std::vector<vacate::UniqueFd> queues_;  ///< both ends of each socket that holds sent descriptors
};

}  // namespace lab
