// SPDX-License-Identifier: Apache-2.0
// What is asked and what is allowed: figures, the protection rules, and the request that the command line makes of
// them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/process.h"

namespace vacate {

/// Figures of design.md section 5, "Numbers".
struct Policy {
  Bytes memory_tolerance = mebibytes(128);
  Bytes largest_assumed_baseline = gibibytes(1);
  std::chrono::milliseconds sample_distance{20};
  std::chrono::milliseconds driver_deadline{5000};
  std::chrono::milliseconds held_by_nobody_after{10000};  ///< no holder and no fall for so long
  std::chrono::milliseconds recent_release{30000};        ///< a release younger than this may still be under way
  std::chrono::milliseconds resource_tracker_patience{2000};
  unsigned max_rounds = 5;
};

/// How far `free` may go.
enum class Scope { leftovers, unsure, all };

/// Who is meant. Empty lists mean everybody; several kinds of selectors narrow each other.
struct Selection {
  std::vector<unsigned> gpus;  ///< indices; empty: all
  bool all_gpus = true;
  std::vector<ProcessSelector> pids;
  std::vector<uid_t> users;
};

struct FreeRequest {
  Scope scope = Scope::leftovers;
  Selection selection;
  std::vector<ProcessSelector> even;  ///< protected holders named with --even
  bool term_only = false;
  bool keep_shm = false;
  std::chrono::milliseconds grace{10000};
  std::chrono::milliseconds timeout{60000};
};

}  // namespace vacate
