// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

namespace vacate {

std::string_view wait_help() noexcept {
  return R"(Usage: vacate wait [OPTION...]

Blocks until GPUs are free: for services, jobs and CI. Holders and memory decide
together, utilisation never. Says at once who is in the way and since when, and
at the deadline exits 1 with their names. Ends nobody, but for --reap

Until when:
  --idle             nobody has a context or memory but protected processes,
                     and no more memory is in use than the GPU uses by itself
                     and those have (default)
  --used-below SIZE  less than so much is in use: 8GiB, 10%
  --free SIZE        at least so much is free: 90GiB, 50%
  --for TIME         it has to hold for so long (1s)
  --timeout TIME     give up (5min); 0: never

Which:
  --gpu LIST         these: index, GPU- UUID or its beginning, PCI bus id, all
                     (default)
  --pid LIST         only these holders count: PID or PID@START
  --user LIST        only holders of these users: names or numbers
  --unit LIST        only those of these units: llm or llm.service
  --container LIST   only those in these containers: id, its first 12 digits or
                     more, or the name of a machine or LXC container
  --job LIST         only those of these batch jobs: numbers
  --cgroup LIST      only those in these control groups and below: paths
  --ignore-pid LIST  these do not count, nor does their memory
  --ignore-unit LIST nor do those in these units

How:
  --reap             end leftovers first, as 'vacate free --yes' does
  --lock             take turns: one vacate at a time waits for a GPU
  --policy FILE      rules and figures beside those of /etc/vacate/policy.toml
  --scan METHOD      how processes are looked at: auto, procfs or bpf (auto)

Output:
  --json             one JSON object (vacate.wait/1)
  --quiet            say only how it ended
  -h, --help         show this help

Examples:
  vacate wait --gpu 0,1 --timeout 10min
  vacate wait --free 40GiB --ignore-unit other-model.service
)";
}

}  // namespace vacate
