// SPDX-License-Identifier: Apache-2.0
// A strict subset of a client's holders frees nothing (design.md, rule 4): whoever shares a client with one that is
// ended has to go with it, or the plan says why ending the one will not help. Never brings in what selection.h refuses.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/plan.h"
#include "plan/kinship.h"
#include "plan/selection.h"

namespace vacate {

struct Decisions {
  std::map<pid_t, Choice> choices;                    ///< holders that are ended or refused
  std::map<pid_t, std::vector<std::string>> remarks;  ///< said with their steps
  std::map<pid_t, ThawTarget> thaws;                  ///< what keeps them frozen and is thawed
  std::map<pid_t, UnitTarget> units;                  ///< of those who are ended: by the stop of which service

  [[nodiscard]] bool ends(pid_t pid) const {
    const auto at = choices.find(pid);
    return at != choices.end() && at->second.end;
  }
};

/// Adds the co-holders of what is ended where they may go: other leftovers, and children that inherited a client and
/// have none of their own. Of the rest it leaves a remark with the holder that is ended.
void close_over_clients(const Snapshot& snapshot, const Attribution& attribution, const Kinship& kinship,
                        const Selector& selector, Decisions& decisions);

}  // namespace vacate
