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
#include "model/scan_use.h"

namespace vacate {

/// A rule of a policy file. Everything it states has to fit (conjunction); a rule that states nothing is refused when
/// the file is read. It can only add protection: the built-in rules stay.
struct PolicyRule {
  std::string name;                ///< shown as the protection's rule
  std::string detail;              ///< why, for people
  std::string source;              ///< "/etc/vacate/policy.toml:12"
  std::optional<std::string> exe;  ///< pattern (*, ?) for the whole path of the executable
  std::optional<uid_t> uid;
  std::optional<std::string> unit;    ///< pattern for the innermost unit
  std::optional<std::string> cgroup;  ///< pattern for the path of the control group
  std::optional<std::string> role;    ///< word of HolderRole
  bool forbid = false;                ///< not even by --even
  bool term_only = false;             ///< may be asked, never killed; with `grace` and `term_only` unset: protected
  std::optional<std::chrono::milliseconds> grace;  ///< at least so long between TERM and KILL
  bool operator==(const PolicyRule&) const = default;
};

/// What policy files say of how a process is ended, if it is: several rules add up, the stricter figure counts.
struct EndingTerms {
  bool term_only = false;                          ///< never killed
  std::optional<std::chrono::milliseconds> grace;  ///< at least so long between its own TERM and KILL
  std::vector<std::string> because;                ///< a sentence a rule
  [[nodiscard]] bool any() const noexcept { return term_only || grace.has_value(); }
  bool operator==(const EndingTerms&) const = default;
};

/// What one GPU uses while nobody holds it, by configuration.
struct ConfiguredBaseline {
  std::string gpu;  ///< "*" or what names_gpu() understands
  Bytes amount;
  bool operator==(const ConfiguredBaseline&) const = default;
};

/// Figures of design.md section 5, "Numbers", and what policy files add.
struct Policy {
  Bytes memory_tolerance = mebibytes(128);
  Bytes largest_assumed_baseline = gibibytes(1);
  std::chrono::milliseconds sample_distance{20};
  std::chrono::milliseconds driver_deadline{5000};
  std::chrono::milliseconds held_by_nobody_after{10000};  ///< no holder and no fall for so long
  std::chrono::milliseconds recent_release{30000};        ///< a release younger than this may still be under way
  std::chrono::milliseconds resource_tracker_patience{2000};
  unsigned max_rounds = 5;
  ScanMethod scan = ScanMethod::automatic;  ///< of --scan
  std::vector<PolicyRule> rules;
  std::vector<ConfiguredBaseline> baselines;  ///< the first that fits counts
};

/// How far `free` may go.
enum class Scope { leftovers, unsure, all };

/// Who is meant. Empty lists mean everybody; several kinds of selectors narrow each other.
struct Selection {
  std::vector<unsigned> gpus;  ///< indices; empty: all
  bool all_gpus = true;
  std::vector<ProcessSelector> pids;
  std::vector<uid_t> users;
  std::vector<std::string> units = {};       ///< "llm" and "llm.service" are one
  std::vector<std::string> containers = {};  ///< whole ids or beginnings of 12 digits at least, or names of machines
  std::vector<std::string> jobs = {};        ///< Slurm's numbers
  std::vector<std::string> cgroups = {};     ///< paths; everything below counts
};

struct FreeRequest {
  Scope scope = Scope::leftovers;
  Selection selection;
  std::vector<ProcessSelector> even;  ///< protected holders named with --even
  bool term_only = false;
  bool keep_shm = false;
  bool stop_units = false;  ///< stop services that would start their process again
  bool thaw = false;        ///< thaw frozen control groups all of whose processes are ended
  std::chrono::milliseconds grace{10000};
  std::chrono::milliseconds timeout{60000};
};

}  // namespace vacate
