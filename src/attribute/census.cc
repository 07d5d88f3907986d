// SPDX-License-Identifier: Apache-2.0
#include "attribute/census.h"

#include <algorithm>
#include <tuple>

namespace vacate {

Census::Census(const Snapshot& snapshot) : snapshot_(&snapshot) {
  index_nodes();
  index_references();
}

const Process* Census::living(pid_t pid) const noexcept {
  const auto* process = snapshot_->find(pid);
  return process != nullptr && !is_gone(*process) ? process : nullptr;
}

void Census::index_nodes() {
  gpu_of_node_.reserve(snapshot_->nodes.size());
  for (const auto& node : snapshot_->nodes) {
    std::optional<unsigned> index;
    if (node.role == NodeRole::gpu && node.minor) {
      for (const auto& gpu : snapshot_->gpus) {
        if (gpu.minor.known() && *gpu.minor == *node.minor) index = gpu.index;
      }
    }
    gpu_of_node_.push_back(index);
  }
}

// The tool's own processes are no holders (design.md, rule 7): its driver child would otherwise be found at every scan.
bool Census::is_of_vacate(const Process& process) const noexcept {
  const auto self = snapshot_->caller.self.pid;
  return self != 0 && (process.key.pid == self || process.ppid == self);
}

void Census::index_references() {
  for (const auto& reference : snapshot_->references) {
    if (reference.node >= snapshot_->nodes.size() || !pins_memory(role_of(reference.node))) continue;
    const auto* process = snapshot_->find(reference.pid);
    if (process != nullptr && (is_gone(*process) || is_of_vacate(*process))) continue;
    references_[reference.pid].push_back(reference);
  }
  for (auto& [pid, list] : references_) {
    std::sort(list.begin(), list.end(), [](const Reference& a, const Reference& b) {
      return std::tie(a.node, a.kind, a.detail, a.count) < std::tie(b.node, b.kind, b.detail, b.count);
    });
  }
}

template <class Predicate>
bool Census::any_reference(pid_t pid, Predicate predicate) const noexcept {
  const auto at = references_.find(pid);
  return at != references_.end() && std::any_of(at->second.begin(), at->second.end(), predicate);
}

bool Census::refers_to_gpu(pid_t pid, unsigned gpu) const noexcept {
  return any_reference(pid, [&](const Reference& reference) { return gpu_of(reference.node) == gpu; });
}

bool Census::refers_to_any_gpu(pid_t pid) const noexcept {
  return any_reference(pid, [&](const Reference& reference) { return role_of(reference.node) == NodeRole::gpu; });
}

bool Census::has_uvm(pid_t pid) const noexcept {
  return any_reference(pid, [&](const Reference& reference) { return role_of(reference.node) == NodeRole::uvm; });
}

bool Census::looks_like_compute(pid_t pid) const noexcept {
  return has_uvm(pid) ||
         any_reference(pid, [](const Reference& reference) { return reference.kind == EvidenceKind::mapping; });
}

bool Census::has_mappings_only(pid_t pid) const noexcept {
  return is_holder(pid) && !any_reference(pid, [](const Reference& r) { return r.kind != EvidenceKind::mapping; });
}

}  // namespace vacate
