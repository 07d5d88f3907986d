// SPDX-License-Identifier: Apache-2.0
// Does a container still exist? What the runtimes themselves keep in the folders of their state, looked up by id in an
// expendable child: nothing is listed but their namespaces, nothing is read, no link is followed and only root's
// folders count. "Gone" takes more than one absence; what is not certain is unknown.
#pragma once

#include <string>
#include <vector>

#include "model/snapshot.h"

namespace vacate {

struct ContainerQuestion {
  std::string id;       ///< 64 hexadecimal digits
  std::string runtime;  ///< as Origin::runtime has it; empty: the path does not tell
  auto operator<=>(const ContainerQuestion&) const = default;
};

/// What lookups in all known folders have found about one container.
struct ContainerTraces {
  std::string found_in;        ///< the folder that has it; empty: none
  bool all_looked_up = false;  ///< every known folder that is there could be looked into
  bool docker_runs = false;    ///< containerd has tasks or had some for Docker since the boot
  bool docker_data = false;    ///< Docker's records of its containers are at their usual place
  bool cri_runs = false;       ///< the same of Kubernetes' containers
  bool oci_runs = false;       ///< crun or runc have state of their own
  bool oci_data = false;       ///< podman's and CRI-O's records are at their usual place, in memory and on disk
};

/// Known to exist, known to be gone or unknown, for the `runtime` of a question. Pure.
[[nodiscard]] Reading<bool> judge_traces(const std::string& runtime, const ContainerTraces& traces);

/// One answer for each of `questions`, in their order.
[[nodiscard]] std::vector<Existence> look_up_containers(const std::vector<ContainerQuestion>& questions);

}  // namespace vacate
