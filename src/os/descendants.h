// SPDX-License-Identifier: Apache-2.0
// Who descends from the calling process, proven and pinned. A child subreaper keeps whatever its children leave behind
// (double forks, sessions of their own, other names, other control groups), so descent is the one relation that none of
// them can shed.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/result.h"
#include "os/proc_parse.h"
#include "os/process_ref.h"

namespace vacate {

struct Descendant {
  ProcessKey key;
  ProcStat stat;
};

struct Family {
  std::vector<Descendant> members;  ///< parents before their children; dead ones that nobody reaped left out
  /// Some could not be pinned (out of descriptors) or lost their parent during the look: look again.
  bool incomplete = false;
};

/// Everybody below the caller. Each was pinned first and then seen to be the child
/// of its parent, which was pinned and still alive afterwards: a number that was recycled on the way is in no list.
[[nodiscard]] Result<Family> find_descendants(PinSet& pins);

/// Has the calling process children, ended ones that it has not waited for included? Needs no /proc: what is hidden
/// there counts too.
[[nodiscard]] bool has_children() noexcept;

}  // namespace vacate
