// SPDX-License-Identifier: Apache-2.0
// The table behind nodes.h.
#include "lab/driver/nodes.h"

#include <algorithm>

#include <fmt/format.h>

namespace lab {

NodeTable::NodeTable(const DriverConfig& config) {
  const auto add = [this](NodeKind kind, std::string name, std::uint32_t gpu_index = 0) {
    // Inode 1 is FUSE's root directory, so the order of this table is the numbering.
    nodes_.push_back({nodes_.size() + 1, kind, std::move(name), gpu_index});
  };
  add(NodeKind::directory, "");
  add(NodeKind::lab, "control");
  add(NodeKind::slow, "slow");
  add(NodeKind::ctl, "nvidiactl");
  add(NodeKind::uvm, "nvidia-uvm");
  add(NodeKind::uvm_tools, "nvidia-uvm-tools");
  for (std::uint32_t index = 0; index < config.gpus.size(); ++index) {
    add(NodeKind::gpu, fmt::format("nvidia{}", config.gpus[index].minor.value_or(index)), index);
  }
}

const Node* NodeTable::by_inode(std::uint64_t inode) const noexcept {
  return inode >= 1 && inode <= nodes_.size() ? &nodes_[inode - 1] : nullptr;
}

const Node* NodeTable::by_name(std::string_view name) const noexcept {
  const auto found =
      std::find_if(nodes_.begin() + 1, nodes_.end(), [&](const Node& node) { return node.name == name; });
  return found == nodes_.end() ? nullptr : &*found;
}

}  // namespace lab
