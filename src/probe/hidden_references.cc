// SPDX-License-Identifier: Apache-2.0
#include "probe/hidden_references.h"

#include <map>
#include <tuple>

#include "model/find_by_pid.h"

namespace vacate {

std::vector<HiddenReference> hidden_references_from(const std::vector<InFlight>& queued,
                                                    const std::vector<RingFile>& rings,
                                                    const std::vector<Process>& processes) {
  const auto is_there = [&](pid_t pid) { return find_by_pid(processes, pid) != nullptr; };
  using Key = std::tuple<pid_t, HiddenKind, int, std::string>;
  std::map<Key, unsigned> counts;
  for (const auto& socket : queued)
    if (is_there(socket.pid)) counts[Key(socket.pid, HiddenKind::in_flight, socket.fd, "")] += socket.count;
  for (const auto& ring : rings)
    if (is_there(ring.pid)) ++counts[Key(ring.pid, HiddenKind::io_uring_file, ring.fd, ring.path)];
  std::vector<HiddenReference> references;
  for (const auto& [key, count] : counts) {
    const auto& [pid, kind, fd, path] = key;
    references.push_back({pid, kind, fd, count, path});
  }
  return references;
}

}  // namespace vacate
