// SPDX-License-Identifier: Apache-2.0
// An index of one snapshot: who lives, who refers to which GPU, who is whose parent. Facts only, no judgement; pure.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/snapshot.h"

namespace vacate {

class Census {
 public:
  /// `snapshot` must outlive the census.
  explicit Census(const Snapshot& snapshot);

  [[nodiscard]] const Snapshot& snapshot() const noexcept { return *snapshot_; }

  /// The process, if it was seen and lives. A plain zombie is nobody: it holds nothing and owns nobody
  /// (reports.md 6.3).
  [[nodiscard]] const Process* living(pid_t pid) const noexcept;

  /// References that pin memory (facts.md 2.2), by the pid of the holder. Nothing of vacate itself or of its children,
  /// and nothing of zombies; the references of a pid that no process was seen for are kept.
  [[nodiscard]] const std::map<pid_t, std::vector<Reference>>& references() const noexcept { return references_; }
  [[nodiscard]] bool is_holder(pid_t pid) const noexcept { return references_.contains(pid); }

  /// Index of the GPU that a node belongs to: by the minor, which is not the index (facts.md 2.1). Nothing for nodes of
  /// no single GPU and of GPUs that nobody listed.
  [[nodiscard]] std::optional<unsigned> gpu_of(std::size_t node) const noexcept { return gpu_of_node_[node]; }
  [[nodiscard]] NodeRole role_of(std::size_t node) const noexcept { return snapshot_->nodes[node].role; }

  /// Does the holder refer to the node of this GPU itself?
  [[nodiscard]] bool refers_to_gpu(pid_t pid, unsigned gpu) const noexcept;
  [[nodiscard]] bool refers_to_any_gpu(pid_t pid) const noexcept;
  /// Does it have nvidia-uvm open, or any node mapped? Computing does; watching through NVML does neither
  /// (facts.md 2.2).
  [[nodiscard]] bool looks_like_compute(pid_t pid) const noexcept;
  [[nodiscard]] bool has_uvm(pid_t pid) const noexcept;
  [[nodiscard]] bool has_mappings_only(pid_t pid) const noexcept;

 private:
  void index_nodes();
  void index_references();
  [[nodiscard]] bool is_of_vacate(const Process& process) const noexcept;
  template <class Predicate>
  [[nodiscard]] bool any_reference(pid_t pid, Predicate predicate) const noexcept;

  const Snapshot* snapshot_;
  std::vector<std::optional<unsigned>> gpu_of_node_;
  std::map<pid_t, std::vector<Reference>> references_;
};

}  // namespace vacate
