// SPDX-License-Identifier: Apache-2.0
// What the path of a control group tells about where a process came from: unit, container, Slurm job, login session. A
// label for people and scripts; nobody is ended because of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vacate {

struct Origin {
  std::optional<std::string> unit;       ///< the innermost .service or .scope
  std::optional<std::string> container;  ///< the 64 hexadecimal digits of docker, podman, containerd or CRI-O
  std::optional<std::string> slurm_job;
  std::optional<std::string> session;  ///< of logind
  bool operator==(const Origin&) const = default;
};

/// Reads `cgroup`, "/system.slice/llm.service" and the like. What it does not say stays empty.
[[nodiscard]] Origin parse_origin(std::string_view cgroup);

}  // namespace vacate
