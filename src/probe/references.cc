// SPDX-License-Identifier: Apache-2.0
#include "probe/references.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace vacate {
namespace {

struct Sum {
  unsigned count = 0;
  std::set<std::pair<pid_t, int>> where;  ///< thread (0: the process's own table) and descriptor
};

/// "fd 3, 4, 5 and 48 more", "thread 4713 fd 5".
std::string describe_places(const std::set<std::pair<pid_t, int>>& where) {
  static constexpr std::size_t kMostNamed = 4;
  std::string text;
  pid_t thread = -1;
  std::size_t named = 0;
  for (const auto& [tid, fd] : where) {
    if (named == kMostNamed) break;
    if (named > 0) text += ", ";
    if (tid != thread) {
      text += tid != 0 ? "thread " + std::to_string(tid) + " fd " : "fd ";
      thread = tid;
    }
    text += std::to_string(fd);
    ++named;
  }
  if (where.size() > named) text += " and " + std::to_string(where.size() - named) + " more";
  return text;
}

}  // namespace

std::vector<Reference> references_from(const std::vector<NodeHit>& hits, const std::vector<MappingHit>& mappings,
                                       DeviceNodes& nodes) {
  std::set<std::tuple<pid_t, int, NodeKey>> own;
  for (const auto& hit : hits)
    if (hit.tid == hit.pid) own.insert({hit.pid, hit.fd, hit.node});
  std::map<std::tuple<pid_t, std::size_t, EvidenceKind>, Sum> sums;
  for (const auto& hit : hits) {
    const bool in_thread = hit.tid != hit.pid;
    // Where kcmp could not tell shared tables apart, a thread's repeats the process's.
    if (in_thread && own.contains({hit.pid, hit.fd, hit.node})) continue;
    auto& sum = sums[{hit.pid, nodes.index_of(hit.node),
                      in_thread ? EvidenceKind::thread_descriptor : EvidenceKind::descriptor}];
    ++sum.count;
    sum.where.insert({in_thread ? hit.tid : 0, hit.fd});
  }
  for (const auto& hit : mappings) sums[{hit.pid, nodes.index_of(hit.node), EvidenceKind::mapping}].count += hit.count;
  std::vector<Reference> references;
  for (const auto& [key, sum] : sums) {
    const auto& [pid, node, kind] = key;
    references.push_back(
        {pid, kind, node, sum.count, kind == EvidenceKind::mapping ? "mapped" : describe_places(sum.where)});
  }
  return references;
}

}  // namespace vacate
