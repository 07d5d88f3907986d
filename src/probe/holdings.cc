// SPDX-License-Identifier: Apache-2.0
#include "probe/holdings.h"

#include <algorithm>

namespace vacate {
namespace {

bool has(const std::vector<pid_t>& pids, pid_t pid) { return std::find(pids.begin(), pids.end(), pid) != pids.end(); }

/// Of a mapped buffer nothing tells whose it is; that the scan knew it as one of the driver's does.
bool is_known_buffer(const NodeKey& node, const Snapshot& seen) {
  return std::any_of(seen.nodes.begin(), seen.nodes.end(), [&](const DeviceNode& known) {
    return !known.rdev && known.device == node.first && known.inode == node.second;
  });
}

bool is_pinned(const std::vector<NodeHit>& hits, DeviceNodes& nodes) {
  return std::any_of(hits.begin(), hits.end(),
                     [&](const NodeHit& hit) { return pins_memory(nodes.nodes()[nodes.index_of(hit.node)].role); });
}

bool is_pinned(const std::vector<MappingHit>& hits, DeviceNodes& nodes, const Snapshot& seen) {
  return std::any_of(hits.begin(), hits.end(), [&](const MappingHit& hit) {
    if (hit.node.kind == NodeKind::dma_buf && !is_known_buffer(hit.node, seen)) return false;
    return pins_memory(nodes.nodes()[nodes.index_of(hit.node)].role);
  });
}

Error cannot_be_told(const Holdings& holdings) {
  static constexpr const char* kWhat = "what it holds cannot be read again";
  const auto& failed = holdings.walk.failed;
  return {ErrorCode::io, failed.empty() ? kWhat : std::string(kWhat) + ": " + failed.front().second};
}

}  // namespace

bool Holdings::is_unread(pid_t pid) const {
  const bool failed =
      std::any_of(walk.failed.begin(), walk.failed.end(), [&](const auto& f) { return f.first == pid; });
  return failed || has(walk.denied, pid) || has(mappings.denied, pid) || has(mappings.stuck, pid) ||
         has(mappings.failed, pid);
}

Holdings read_holdings(const ProcDirectory& root, const DeviceNodes& nodes, std::uint64_t pid_namespace,
                       const std::vector<pid_t>& pids, std::vector<pid_t> with_maps) {
  MappingScan mappings(std::move(with_maps), nodes);
  Walker walker(root, nodes, pid_namespace);
  for (const pid_t pid : pids) walker.add_process(pid);
  Holdings holdings{std::move(walker.result()), {}};
  holdings.mappings = mappings.finish();
  return holdings;
}

Result<bool> still_holds(const ProcessKey& key, const Snapshot& seen) {
  const auto root = ProcDirectory::open_root();
  if (!root) return root.error();
  auto nodes = DeviceNodes::read();
  const auto open = read_holdings(*root, nodes, key.pid_namespace, {key.pid}, {});
  if (is_pinned(open.walk.hits, nodes)) return true;
  if (open.is_unread(key.pid)) return cannot_be_told(open);
  if (open.walk.processes.empty()) return Error{ErrorCode::gone, "it has ended"};
  // Its table of descriptors goes before what was in it.
  if (const auto& process = open.walk.processes.front(); process.exiting || is_gone(process)) return true;
  const auto mapped = read_holdings(*root, nodes, key.pid_namespace, {}, {key.pid});
  if (is_pinned(mapped.mappings.hits, nodes, seen)) return true;
  if (mapped.is_unread(key.pid)) return cannot_be_told(mapped);
  return false;
}

}  // namespace vacate
