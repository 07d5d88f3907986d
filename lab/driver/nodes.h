// SPDX-License-Identifier: Apache-2.0
// The files of the driver's directory: which there are, and what each stands for. A table made once; it knows nothing
// of open files or of FUSE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/driver/driver.h"

namespace lab {

enum class NodeKind {
  directory,
  lab,   ///< `control`: the lab's own view, never part of /dev
  slow,  ///< `slow`: answers reads late; never part of /dev either
  ctl,
  gpu,
  uvm,
  uvm_tools,
};

struct Node {
  std::uint64_t inode = 0;
  NodeKind kind = NodeKind::directory;
  std::string name;
  std::uint32_t gpu_index = 0;  ///< only of NodeKind::gpu
};

class NodeTable {
 public:
  /// Of a complete()d configuration.
  explicit NodeTable(const DriverConfig& config);

  [[nodiscard]] const std::vector<Node>& all() const noexcept { return nodes_; }
  [[nodiscard]] const Node* by_inode(std::uint64_t inode) const noexcept;
  [[nodiscard]] const Node* by_name(std::string_view name) const noexcept;

 private:
  std::vector<Node> nodes_;
};

}  // namespace lab
