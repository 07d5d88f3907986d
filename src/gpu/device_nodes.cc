// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_nodes.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "base/text.h"
#include "base/unique_fd.h"
#include "os/procfs.h"

namespace vacate {
namespace {

// Minors of major 195 (nv-chardev-numbers.h).
constexpr std::uint32_t kLastGpuMinor = 247;
constexpr std::uint32_t kModesetMinor = 254;
constexpr std::uint32_t kCtlMinor = 255;

NodeKey key_of(const DeviceNode& node) noexcept {
  return node.rdev ? NodeKey{true, *node.rdev, 0} : NodeKey{false, node.device, node.inode};
}

std::string default_path(const NodeName& name, std::uint64_t rdev) {
  const auto number = std::to_string(minor(rdev));
  switch (name.role) {
    case NodeRole::gpu:
      return "/dev/nvidia" + number;
    case NodeRole::ctl:
      return "/dev/nvidiactl";
    case NodeRole::uvm:
      return "/dev/nvidia-uvm";
    case NodeRole::uvm_tools:
      return "/dev/nvidia-uvm-tools";
    case NodeRole::modeset:
      return "/dev/nvidia-modeset";
    case NodeRole::caps:
      return "/dev/nvidia-caps/nvidia-cap" + number;
    case NodeRole::nvswitch:
      return "/dev/nvidia-nvswitch" + number;
    case NodeRole::nvlink:
    case NodeRole::imex:
    case NodeRole::gdrcopy:
    case NodeRole::storage:
    case NodeRole::rdma:
    case NodeRole::dma_buf:
    case NodeRole::other:
      break;
  }
  return "character device " + std::to_string(major(rdev)) + ":" + number;
}

/// The driver's node behind one name, if it is one: a character device has to have the driver's number, whatever it is
/// called.
std::optional<DeviceNode> read_node(int directory, const std::string& prefix, const char* name,
                                    const DeviceMajors& majors) {
  const auto claimed = parse_node_name(name);
  if (!claimed) return std::nullopt;
  const auto file = read_identity(directory, name);
  if (!file || file->is_directory()) return std::nullopt;
  DeviceNode node{claimed->role, prefix + name, claimed->minor, std::nullopt, file->device, file->inode};
  if (!file->is_character()) return node;
  const auto numbered = classify_device_number(majors, file->rdev);
  if (numbered) {
    node.role = numbered->role;
    node.minor = numbered->minor;
  } else if (majors.known || claimed->role == NodeRole::gpu || claimed->role == NodeRole::ctl) {
    return std::nullopt;  // a stale node: its number may be another driver's by now
  }
  node.rdev = file->rdev;
  return node;
}

void read_directory_nodes(const char* path, const DeviceMajors& majors, std::vector<DeviceNode>& nodes) {
  const UniqueFd directory(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!directory) return;
  DirectoryReader reader;
  reader.start(directory.get());
  while (const char* name = reader.next()) {
    if (auto node = read_node(directory.get(), std::string(path) + "/", name, majors))
      nodes.push_back(*std::move(node));
  }
}

}  // namespace

DeviceMajors parse_device_majors(std::string_view proc_devices) {
  return {!proc_devices.empty(), parse_character_major(proc_devices, "nvidia-uvm"),
          parse_character_major(proc_devices, "nvidia-caps"), parse_character_major(proc_devices, "nvidia-nvswitch")};
}

std::optional<NodeName> parse_node_name(std::string_view name) noexcept {
  static constexpr std::string_view kPrefix = "nvidia";
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const auto rest = name.substr(kPrefix.size());
  if (rest == "ctl") return NodeName{NodeRole::ctl, std::nullopt};
  if (rest == "-uvm") return NodeName{NodeRole::uvm, std::nullopt};
  if (rest == "-uvm-tools") return NodeName{NodeRole::uvm_tools, std::nullopt};
  if (rest == "-modeset") return NodeName{NodeRole::modeset, std::nullopt};
  if (rest.substr(0, 9) == "-nvswitch") return NodeName{NodeRole::nvswitch, std::nullopt};
  if (rest.substr(0, 4) == "-cap" && parse_unsigned(rest.substr(4))) return NodeName{NodeRole::caps, std::nullopt};
  const auto minor = parse_unsigned(rest);
  if (!minor || *minor > kLastGpuMinor) return std::nullopt;
  return NodeName{NodeRole::gpu, static_cast<std::uint32_t>(*minor)};
}

std::optional<NodeName> classify_device_number(const DeviceMajors& majors, std::uint64_t rdev) noexcept {
  const std::uint32_t device_major = major(rdev);
  const std::uint32_t device_minor = minor(rdev);
  if (device_major == DeviceMajors::kNvidia) {
    if (device_minor <= kLastGpuMinor) return NodeName{NodeRole::gpu, device_minor};
    if (device_minor == kCtlMinor) return NodeName{NodeRole::ctl, std::nullopt};
    if (device_minor == kModesetMinor) return NodeName{NodeRole::modeset, std::nullopt};
    return NodeName{NodeRole::other, std::nullopt};
  }
  if (majors.uvm == device_major) {
    if (device_minor > 1) return NodeName{NodeRole::other, std::nullopt};
    return NodeName{device_minor == 0 ? NodeRole::uvm : NodeRole::uvm_tools, std::nullopt};
  }
  if (majors.caps == device_major) return NodeName{NodeRole::caps, std::nullopt};
  if (majors.nvswitch == device_major) return NodeName{NodeRole::nvswitch, std::nullopt};
  return std::nullopt;
}

DeviceNodes DeviceNodes::read() {
  const auto devices = read_file("/proc/devices");
  const auto majors = parse_device_majors(devices ? *devices : std::string());
  std::vector<DeviceNode> nodes;
  read_directory_nodes("/dev", majors, nodes);
  read_directory_nodes("/dev/nvidia-caps", majors, nodes);
  return DeviceNodes(std::move(nodes), majors);
}

DeviceNodes::DeviceNodes(std::vector<DeviceNode> nodes, DeviceMajors majors) : majors_(majors) {
  for (auto& node : nodes) {
    const NodeKey key = key_of(node);
    if (node.device != 0 || node.inode != 0) by_file_.emplace(std::pair(node.device, node.inode), key);
    // Two names of one device are one node.
    if (!by_key_.emplace(key, 0).second) continue;
    has_files_ = has_files_ || !key.character;
    if (key.character) node.device = node.inode = 0;  // the number says it all
    nodes_.push_back(std::move(node));
  }
  (void)sort();
}

std::optional<NodeKey> DeviceNodes::match(const FileIdentity& file) const noexcept {
  if (file.is_character()) {
    const NodeKey key{true, file.rdev, 0};
    if (classify_device_number(majors_, file.rdev) || by_key_.contains(key)) return key;
    return std::nullopt;
  }
  if (!has_files_) return std::nullopt;
  const NodeKey key{false, file.device, file.inode};
  return by_key_.contains(key) ? std::optional(key) : std::nullopt;
}

std::optional<NodeKey> DeviceNodes::match_file(std::uint64_t device, std::uint64_t inode) const noexcept {
  const auto found = by_file_.find({device, inode});
  return found == by_file_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t DeviceNodes::index_of(const NodeKey& key) {
  const auto [entry, added] = by_key_.try_emplace(key, nodes_.size());
  if (added) {
    DeviceNode node;
    if (key.character) {
      const auto name = classify_device_number(majors_, key.first).value_or(NodeName{});
      node.role = name.role;
      node.minor = name.minor;
      node.rdev = key.first;
      node.path = default_path(name, key.first);
    } else {
      node.device = key.first;
      node.inode = key.second;
    }
    nodes_.push_back(std::move(node));
  }
  return entry->second;
}

std::vector<std::size_t> DeviceNodes::sort() {
  std::vector<std::size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    const auto& node = nodes_[i];
    return std::tuple(node.role, node.minor.value_or(0), node.path, node.rdev.value_or(0), node.device, node.inode);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<std::size_t> moved_to(nodes_.size());
  std::vector<DeviceNode> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    moved_to[order[i]] = i;
    sorted.push_back(std::move(nodes_[order[i]]));
  }
  nodes_ = std::move(sorted);
  index_nodes();
  return moved_to;
}

void DeviceNodes::index_nodes() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) by_key_[key_of(nodes_[i])] = i;
}

}  // namespace vacate
