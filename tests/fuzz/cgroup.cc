// SPDX-License-Identifier: Apache-2.0
// /proc/PID/cgroup and what its path says about where a process came from: labels that the text holds, one component
// each.
#include "fuzz.h"
#include "model/origin.h"
#include "os/proc_parse.h"

using namespace vacate;
using namespace vacate::fuzz;

namespace {

void check_label(const std::optional<std::string>& label, const char* law) {
  require(!label || (!label->empty() && !contains(*label, "/")), law);
}

void check_origin(std::string_view cgroup) {
  const auto origin = parse_origin(cgroup);
  check_label(origin.unit, "origin: a unit is one component");
  check_label(origin.service, "origin: a service is one component");
  check_label(origin.session, "origin: a session is one component");
  check_label(origin.slurm_job, "origin: a job of Slurm is one component");
  require(!origin.container || !origin.container->empty(), "origin: a container has a name");
  require(!origin.service || origin.service == origin.unit, "origin: a service is the unit");
  require(!origin.slurm_job || origin.slurm_job == origin.job, "origin: a job of Slurm is the job");
  require(origin.job.has_value() != origin.job_system.empty(), "origin: a job is of a system");
  require(origin == parse_origin(cgroup), "origin: the same path says the same");
  require(is_in_cgroup(cgroup, cgroup) && (cgroup.empty() || !is_in_cgroup("/", cgroup) || trim(cgroup) == "/" ||
                                           cgroup.find_first_not_of('/') == std::string_view::npos),
          "origin: a group is in itself, and the root in no other");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = as_text(data, size);
  const auto path = parse_cgroup(text);
  require(path.empty() || contains(text, ":"), "cgroup: no path without a line");
  require(path.empty() || path == "/" || contains(text, path), "cgroup: the path stands in the text");
  require(!contains(path, "\n"), "cgroup: the path is one line");
  check_origin(path);
  check_origin(text);
  return 0;
}
