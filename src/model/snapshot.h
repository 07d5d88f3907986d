// SPDX-License-Identifier: Apache-2.0
// Everything one scan saw. Pure stages work on it alone: the same snapshot gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "model/device.h"
#include "model/evidence.h"
#include "model/process.h"

namespace vacate {

/// Something the scan could not see. `code` is stable for scripts: not-root, hidepid, fd-denied, maps-denied,
/// maps-timeout, driver-no-answer, list-truncated, foreign-pid-namespace, ...
struct BlindSpot {
  std::string code;
  std::string detail;
  auto operator<=>(const BlindSpot&) const = default;
};

struct Visibility {
  std::vector<BlindSpot> blind_spots;  ///< sorted
  /// Could every process's descriptors, threads and mappings be read? Pipe proofs and "nobody holds it" rest on it.
  bool all_references = true;
  [[nodiscard]] bool complete() const noexcept { return blind_spots.empty(); }
  bool operator==(const Visibility&) const = default;
};

struct Host {
  std::string boot_id;
  std::string kernel;
  std::string hostname;
  std::uint64_t pid_namespace = 0;  ///< inode of the scan's own
  bool whole_host = false;          ///< this is the host's pid namespace (design.md rule 9)
  bool operator==(const Host&) const = default;
};

/// The process that scanned, for protection: it, its ancestors and its session leader are never ended.
struct Caller {
  ProcessKey self;
  std::vector<pid_t> ancestors;  ///< parent first, up to pid 1
  pid_t session_leader = 0;
  uid_t uid = 0;      ///< effective
  bool root = false;  ///< may signal everybody
  /// Control groups of all of those, each once, sorted: no unit with one of them in it is stopped.
  std::vector<std::string> cgroups;
  bool operator==(const Caller&) const = default;
};

/// A service as the service manager tells of it (systemd's D-Bus properties of the same names).
struct ServiceUnit {
  std::string name;          ///< "llm.service"
  std::string active_state;  ///< "active", "inactive", "failed", "activating", ...
  std::string sub_state;     ///< "running", "exited", ...
  pid_t main_pid = 0;        ///< in the scan's pid namespace; 0: none
  std::string restart;       ///< "no", "always", "on-failure", ...
  /// When it last left inactive or failed, in seconds since the epoch (InactiveExitTimestamp): what started later than
  /// that is no leftover of an activation before.
  Reading<double> activated;
  bool operator==(const ServiceUnit&) const = default;
};

/// What the service manager said about the units of candidates (Origin::service). A unit that was asked for and is not
/// here could not be asked about: unknown, never gone.
struct ServiceManager {
  Reading<bool> answered;          ///< false: no manager runs here; unknown: why nobody could say
  std::vector<ServiceUnit> units;  ///< by name
  bool operator==(const ServiceManager&) const = default;
};

/// Does a container or job that a control group names still exist, as far as its own runtime says?
struct Existence {
  std::string id;  ///< Origin::container or Origin::slurm_job
  Reading<bool> exists;
  std::string source;  ///< who said so, for people
  bool operator==(const Existence&) const = default;
};

/// A server of MPS and its clients, as its control daemon tells.
struct MpsServer {
  pid_t pid = 0;
  std::vector<pid_t> clients;  ///< sorted
  bool operator==(const MpsServer&) const = default;
};

/// A control daemon of MPS in the scan's pid namespace. It was asked only if somebody is in the driver's MPS list; what
/// it says is believed only of its own user's clients, or of anybody's if it is root's (facts.md 1.8).
struct MpsDaemon {
  ProcessKey key;
  Reading<uid_t> uid;
  std::string pipe_directory;      ///< where it is asked; hostile bytes
  Reading<bool> answered;          ///< unknown: it could not be asked, or did not answer
  std::string detail;              ///< why
  std::vector<MpsServer> servers;  ///< by pid; those that are there
  bool operator==(const MpsDaemon&) const = default;

  /// The server that has this client; nullptr: none.
  [[nodiscard]] const MpsServer* server_of(pid_t client) const noexcept;
};

/// A frozen control group that has a candidate in it: the topmost one that is frozen.
struct FrozenGroup {
  std::string path;  ///< in the hierarchy of its freezer, as /proc/PID/cgroup spells it; hostile bytes
  Freezer freezer = Freezer::v2;
  Reading<std::vector<pid_t>> members;  ///< of it and of all below it, sorted
  bool operator==(const FrozenGroup&) const = default;
};

struct Snapshot {
  Host host;
  Caller caller;
  Driver driver;
  double time = 0;  ///< seconds since the epoch
  std::vector<DeviceNode> nodes;
  std::vector<Gpu> gpus;              ///< by index
  std::vector<DriverCharge> charges;  ///< by (gpu, pid)
  std::vector<Process> processes;     ///< every visible process, by pid
  std::vector<Reference> references;  ///< by (pid, node, kind)
  /// Sets of processes that share one open file description of a node that pins memory: each set one client or part of
  /// one (kcmp). Each sorted, two members at least, sets sorted.
  std::vector<std::vector<pid_t>> shared_clients;
  std::vector<HiddenReference> hidden_references;  ///< by (pid, kind, fd)
  ServiceManager services;
  std::vector<Existence> containers;   ///< by id: those that control groups of candidates name
  std::vector<Existence> jobs;         ///< by id: Slurm's
  std::vector<MpsDaemon> mps_daemons;  ///< by pid
  std::vector<std::string> shells;     ///< lines of /etc/shells, resolved
  std::vector<FrozenGroup> frozen;     ///< by (path, freezer)
  Visibility visibility;

  bool operator==(const Snapshot&) const = default;

  /// The process with this pid; nullptr if none was seen.
  [[nodiscard]] const Process* find(pid_t pid) const noexcept;
};

}  // namespace vacate
