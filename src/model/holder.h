// SPDX-License-Identifier: Apache-2.0
// What attribution concludes from a snapshot: holders, groups with a standing, and where each GPU's memory went.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/policy.h"
#include "model/snapshot.h"

namespace vacate {

enum class Standing { leftover, live, unsure, foreign };
[[nodiscard]] std::string_view describe(Standing standing) noexcept;

enum class HolderRole { context, inheritor, mapped, files, importer, unresolved };
[[nodiscard]] std::string_view describe(HolderRole role) noexcept;

/// Why a process is never ended without naming it. `absolute`: not even then (vacate's own chain, pid 1, kernel
/// threads).
struct Protection {
  std::string rule;    ///< e.g. "own-chain", "display-server"
  std::string detail;  ///< for people
  bool absolute = false;
  std::string source = {};  ///< "/etc/vacate/policy.toml:12" of the rule; empty: it is built in
  bool operator==(const Protection&) const = default;
};

/// Does it start again what ended?
enum class Restarts { unknown, no, yes };

/// Who starts it again or looks after it, as far as the scan tells: for people and for what stopping it takes. Nobody
/// is ended or spared because of it.
struct Supervisor {
  /// "unit", "user-unit", "container", "slurm-job", "batch-job", "torchrun", "accelerate", "deepspeed", "ray",
  /// "supervisord", "mpi", "tmux", "screen", "shell-job"
  std::string kind;
  std::string name;  ///< "llm.service", a container's id, a job's number, a program; hostile bytes
  pid_t pid = 0;     ///< of the supervising process, 0 where there is none to name
  Restarts restarts = Restarts::unknown;
  bool operator==(const Supervisor&) const = default;
};

struct HolderEvidence {
  EvidenceKind kind = EvidenceKind::descriptor;
  std::string node;  ///< path for display
  unsigned count = 0;
  std::string detail;
  bool operator==(const HolderEvidence&) const = default;
};

/// What a holder has on one GPU. `memory`: what the driver charges it there; unknown where the driver does not charge
/// it.
struct HolderOnGpu {
  unsigned index = 0;
  Reading<Bytes> memory;
  bool has_context = false;  ///< in one of the driver's lists for this GPU
  std::vector<HolderEvidence> evidence;
  bool operator==(const HolderOnGpu&) const = default;
};

struct Holder {
  ProcessKey key;
  HolderRole role = HolderRole::files;
  Standing standing = Standing::unsure;
  std::vector<std::string> because;  ///< sentences without figures that change between two scans
  std::optional<Protection> protection;
  std::optional<Supervisor> supervisor;
  EndingTerms terms;
  std::size_t group = 0;          ///< Group::id
  std::vector<HolderOnGpu> gpus;  ///< by index; empty for one that has only nvidiactl or nvidia-uvm open and no charge
  std::vector<HolderEvidence> common;  ///< evidence on nodes of no single GPU (nvidiactl, nvidia-uvm)
  bool operator==(const Holder&) const = default;

  /// Has a context or memory on some GPU, or keeps a client of a dead opener: not merely device files open (design.md
  /// Protection).
  [[nodiscard]] bool pins_memory() const noexcept { return role != HolderRole::files; }
};

struct Relative {
  ProcessKey key;
  Standing standing = Standing::unsure;  ///< leftover: is ended with its group
  bool resource_tracker = false;         ///< Python's: ends by itself when its clients are gone; never asked first
  std::optional<Protection> protection;
  EndingTerms terms = {};
  bool operator==(const Relative&) const = default;
};

struct Group {
  std::size_t id = 0;               ///< 1.., by lowest pid of its holders
  std::vector<pid_t> holders;       ///< sorted
  std::vector<Relative> relatives;  ///< members that hold nothing, by pid
  std::optional<ProcessKey> owner;  ///< who still owns it, where somebody does
  std::string owner_title;
  Standing standing = Standing::unsure;
  bool operator==(const Group&) const = default;
};

enum class BaselineSource { configured, measured, assumed };
struct Baseline {
  Bytes amount;
  BaselineSource source = BaselineSource::assumed;
  bool operator==(const Baseline&) const = default;
};

/// One reason that fits memory nobody owns up to. `code` is stable for scripts: managed-memory, exported-memory,
/// dead-opener, lag, driver-residue, unified-memory, hidden-reference, ghost-utilization, ...
struct Explanation {
  std::string code;
  std::string text;         ///< a sentence
  std::vector<pid_t> pids;  ///< who it is about, sorted
  bool operator==(const Explanation&) const = default;
};

/// Somebody who would make a reset fail and whom nobody is going to end: device files only, or protected; and how to
/// make them let go (facts.md 2.6).
struct ResetBlocker {
  pid_t pid = 0;
  std::string way;         ///< a sentence
  bool transient = false;  ///< a query that ends by itself in a moment: try again
  bool operator==(const ResetBlocker&) const = default;
};

struct GpuAccount {
  unsigned index = 0;
  std::vector<pid_t> holders;  ///< of any role, sorted
  Bytes attributed;            ///< sum of what the driver charges to holders here
  Reading<Baseline> baseline;
  Reading<Bytes> remainder;                  ///< used - attributed - baseline
  std::vector<Explanation> explanations;     ///< of what nobody owns up to, likeliest first; empty: nothing to explain
  std::vector<ResetBlocker> reset_blockers;  ///< by pid
  bool operator==(const GpuAccount&) const = default;
};

/// A row of the driver's list whose pid could not be tied to a holder.
struct UntiedCharge {
  unsigned gpu = 0;
  pid_t driver_pid = 0;
  Reading<Bytes> memory;
  std::string detail;
  std::vector<pid_t> inheritors;  ///< who keeps it alive, as far as known
  bool operator==(const UntiedCharge&) const = default;
};

struct Attribution {
  std::vector<Holder> holders;       ///< by pid
  std::vector<Group> groups;         ///< by id
  std::vector<GpuAccount> accounts;  ///< one a GPU, by index
  std::vector<UntiedCharge> charged_to_nobody;
  /// Who would end with the stop of a service although they are no holders: protected, or with terms of a policy; by
  /// pid.
  std::vector<Relative> spared_in_services = {};
  bool operator==(const Attribution&) const = default;

  [[nodiscard]] const Holder* find(pid_t pid) const noexcept;
};

}  // namespace vacate
