// SPDX-License-Identifier: Apache-2.0
// What the path of a control group tells about where a process came from: unit, container, batch job, login session
// (facts.md 3.5). Labels, and the names under which a service manager, a container runtime or a scheduler can be asked;
// a path proves nothing by itself, for whoever may write to a control group chooses the names below it. Pure.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace vacate {

/// Hostile bytes throughout, spelt as the path spells them (units keep systemd's \x2d) but for names of machines, whose
/// escapes are undone.
struct Origin {
  /// The innermost .service or .scope that is not inside a container: those belong to a manager of the container's own.
  std::optional<std::string> unit = {};
  /// `unit` where it is a service that the system's own manager can be asked about. Nothing for units of a user's
  /// manager, for user@UID.service itself, below a container or a job (runtimes and schedulers outlive or restart
  /// beside their work) and for a path outside the reader's control group namespace.
  std::optional<std::string> service = {};
  /// The outermost container: 64 hexadecimal digits, or the name of a machine or LXC container. Not for the monitors of
  /// one (conmon, lxc.monitor, a supervisor of nspawn), which are no part of it.
  std::optional<std::string> container = {};
  /// "docker", "containerd", "cri-o", "podman", "nerdctl", "nspawn" or "lxc"; empty where the path does not tell.
  std::string runtime = {};
  /// The innermost one, where a container runs in a container: only the runtime inside knows it.
  std::optional<std::string> inner_container = {};
  std::optional<std::string> pod = {};      ///< uid of Kubernetes' pod, or the id of podman's
  std::optional<std::string> session = {};  ///< of logind
  std::optional<uid_t> user_manager = {};   ///< whose `systemd --user` has `unit`
  /// Job of a batch system: its number, or what that system puts into the path in place of one.
  std::optional<std::string> job = {};
  std::string job_system = {};  ///< "slurm", "pbs", "lsf", "htcondor"; empty without a job
  /// `job` where it is a Slurm job of this machine's own slurmd: not inside a container.
  std::optional<std::string> slurm_job = {};
  /// The path leads out of the reader's control group namespace ("/../..").
  bool is_outside = false;
  bool operator==(const Origin&) const = default;
};

/// Reads `cgroup`, "/system.slice/llm.service" and the like. What it does not say stays empty.
[[nodiscard]] Origin parse_origin(std::string_view cgroup);

/// Is `path` the control group `above` or one below it? Part by part: "/a/b" is not below "/a/". Slashes at the end and
/// doubled ones do not count.
[[nodiscard]] bool is_in_cgroup(std::string_view path, std::string_view above);

/// The control group of `unit` in a path through it: the path down to the last part of that name. Nothing where no part
/// has it.
[[nodiscard]] std::optional<std::string> control_group_of_unit(std::string_view path, std::string_view unit);

}  // namespace vacate
