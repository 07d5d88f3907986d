// SPDX-License-Identifier: Apache-2.0
// Which files are GPU device nodes: by number for character devices, by the file itself for anything else found under a
// known name in /dev (facts.md 2.1). Looks at nodes with statx only; never opens one. Buffers that the driver exported
// as dma-bufs are no nodes but are kept in the same list: they hold memory as a node does (facts.md 2.2.7).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/device.h"
#include "os/file_identity.h"

namespace vacate {

enum class NodeKind : std::uint8_t { character, file, dma_buf };

/// What a node is told by: its device number, or device and inode of the file.
struct NodeKey {
  NodeKind kind = NodeKind::character;
  std::uint64_t first = 0;   ///< rdev, or st_dev
  std::uint64_t second = 0;  ///< 0, or st_ino
  auto operator<=>(const NodeKey&) const = default;
};

/// Majors of the character devices of the driver and of its neighbours, by the names they are registered under. 195 is
/// NVIDIA's for good and not listed.
struct DeviceMajors {
  static constexpr std::uint32_t kNvidia = 195;
  struct Entry {
    std::uint32_t number = 0;
    NodeRole role = NodeRole::other;  ///< of minor 0, where roles differ by minor
  };
  bool known = false;  ///< /proc/devices could be read
  std::vector<Entry> entries;
};
[[nodiscard]] DeviceMajors parse_device_majors(std::string_view proc_devices);

/// Role and minor that a name below /dev claims ("nvidia0", "nvidia-caps/nvidia-cap2", "infiniband/uverbs0"); nothing
/// for an unknown name.
struct NodeName {
  NodeRole role = NodeRole::other;
  std::optional<std::uint32_t> minor;  ///< of nvidiaN
};
[[nodiscard]] std::optional<NodeName> parse_node_name(std::string_view name) noexcept;

/// Does a path written by somebody else end in the name of such a node, deleted or not? A hint: paths prove nothing.
[[nodiscard]] bool ends_in_node_name(std::string_view path) noexcept;

/// Role by device number; nothing for a device that is not the driver's.
[[nodiscard]] std::optional<NodeName> classify_device_number(const DeviceMajors& majors, std::uint64_t rdev) noexcept;

class DeviceNodes {
 public:
  /// Nodes of this machine: those in /dev, and by rule every number of the driver's majors.
  [[nodiscard]] static DeviceNodes read();
  DeviceNodes(std::vector<DeviceNode> nodes, DeviceMajors majors);

  /// The node that this file is; nothing: no GPU node.
  [[nodiscard]] std::optional<NodeKey> match(const FileIdentity& file) const noexcept;
  /// The node with this device and inode, as a line of maps gives them: exact for files; for character devices it finds
  /// those in vacate's own /dev only.
  [[nodiscard]] std::optional<NodeKey> match_file(std::uint64_t device, std::uint64_t inode) const noexcept;

  /// Index in nodes(); a number of the driver for which /dev has no node is added.
  [[nodiscard]] std::size_t index_of(const NodeKey& key);
  [[nodiscard]] const std::vector<DeviceNode>& nodes() const noexcept { return nodes_; }
  /// Is there a node of the GPU driver itself, not only of what works beside it?
  [[nodiscard]] bool has_driver() const noexcept;
  /// Majors among whose character devices are all nodes that have a number, sorted.
  [[nodiscard]] std::vector<std::uint32_t> majors() const;
  /// File systems (st_dev) of nodes that are files, sorted.
  [[nodiscard]] std::vector<std::uint64_t> file_systems() const;
  /// Files and not only numbers have to be compared.
  [[nodiscard]] bool has_files() const noexcept { return has_files_; }

  /// False: something in /dev could not be read, and may be a node.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

  /// Sorts nodes() by role, minor and path; gives for each former index the new one.
  [[nodiscard]] std::vector<std::size_t> sort();

 private:
  void index_nodes();
  [[nodiscard]] DeviceNode make_node(const NodeKey& key) const;

  std::vector<DeviceNode> nodes_;
  DeviceMajors majors_;
  std::map<NodeKey, std::size_t> by_key_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, NodeKey> by_file_;
  bool has_files_ = false;
  bool complete_ = true;
};

}  // namespace vacate
