// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_nodes.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
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

// InfiniBand's fixed major is shared: verbs have 32 minors of it, and a second major of the same name when those are
// used up (uverbs_main.c).
constexpr std::uint32_t kInfinibandMajor = 231;
constexpr std::uint32_t kFirstVerbsMinor = 192;
constexpr std::uint32_t kLastVerbsMinor = 223;

struct DriverName {
  std::string_view name;  ///< in /proc/devices
  NodeRole role;
};
constexpr std::array<DriverName, 8> kDriverNames = {{{"nvidia-uvm", NodeRole::uvm},
                                                     {"nvidia-caps", NodeRole::caps},
                                                     {"nvidia-caps-imex-channels", NodeRole::imex},
                                                     {"nvidia-nvswitch", NodeRole::nvswitch},
                                                     {"nvidia-nvlink", NodeRole::nvlink},
                                                     {"gdrdrv", NodeRole::gdrcopy},
                                                     {"nvidia-fs", NodeRole::storage},
                                                     {"infiniband_verbs", NodeRole::rdma}}};

/// Folders of /dev that have such nodes, with what stands in front of their names in parse_node_name().
struct NodeFolder {
  const char* path;
  const char* prefix;
};
constexpr std::array<NodeFolder, 4> kFolders = {{{"/dev", ""},
                                                 {"/dev/nvidia-caps", "nvidia-caps/"},
                                                 {"/dev/nvidia-caps-imex-channels", "nvidia-caps-imex-channels/"},
                                                 {"/dev/infiniband", "infiniband/"}}};

NodeKey key_of(const DeviceNode& node) noexcept {
  if (node.rdev) return {NodeKind::character, *node.rdev, 0};
  return {node.role == NodeRole::dma_buf ? NodeKind::dma_buf : NodeKind::file, node.device, node.inode};
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
      return minor(rdev) == kCtlMinor ? "/dev/nvidia-nvswitchctl" : "/dev/nvidia-nvswitch" + number;
    case NodeRole::nvlink:
      return "/dev/nvidia-nvlink";
    case NodeRole::imex:
      return "/dev/nvidia-caps-imex-channels/channel" + number;
    case NodeRole::gdrcopy:
      return "/dev/gdrdrv";
    case NodeRole::storage:
      return "/dev/nvidia-fs" + number;
    case NodeRole::rdma:
      if (major(rdev) == kInfinibandMajor)
        return "/dev/infiniband/uverbs" + std::to_string(minor(rdev) - kFirstVerbsMinor);
      break;
    case NodeRole::dma_buf:
    case NodeRole::other:
      break;
  }
  return "character device " + std::to_string(major(rdev)) + ":" + number;
}

bool is_gone(const Error& error) noexcept { return error.code == ErrorCode::gone; }

/// The driver's node behind one name, if it is one: a character device has to have the driver's number, whatever it is
/// called.
Result<std::optional<DeviceNode>> read_node(int directory, const NodeFolder& folder, const char* name,
                                            const DeviceMajors& majors) {
  const auto claimed = parse_node_name(std::string(folder.prefix) + name);
  if (!claimed) return std::nullopt;
  const auto file = read_identity(directory, name);
  if (!file && !is_gone(file.error())) return file.error();
  if (!file || file->is_directory()) return std::nullopt;
  DeviceNode node{claimed->role, std::string(folder.path) + "/" + name, claimed->minor, std::nullopt, file->device,
                  file->inode};
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

/// An error: not everything in there could be read. A folder that is not there has nothing in it.
Result<void> read_folder_nodes(const NodeFolder& folder, const DeviceMajors& majors, std::vector<DeviceNode>& nodes) {
  const UniqueFd directory(open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (!directory) {
    auto error = system_error(folder.path);
    return is_gone(error) ? Result<void>() : error;
  }
  Result<void> whole;
  DirectoryReader reader;
  reader.start(directory.get());
  while (const char* name = reader.next()) {
    auto node = read_node(directory.get(), folder, name, majors);
    if (!node) whole = node.error();
    if (node && *node) nodes.push_back(**std::move(node));
  }
  if (reader.error() != 0) return system_error(folder.path, reader.error());
  return whole;
}

/// `rest` is a number, as in "nvidia-fs0"; nothing else may follow.
bool is_number(std::string_view rest) noexcept { return parse_unsigned(rest).has_value(); }

/// Names directly in /dev that begin with "nvidia"; `rest` is what follows.
std::optional<NodeName> parse_nvidia_name(std::string_view rest) noexcept {
  static constexpr std::string_view kSwitch = "-nvswitch", kStorage = "-fs", kCap = "-cap";
  if (rest == "ctl") return NodeName{NodeRole::ctl, std::nullopt};
  if (rest == "-uvm") return NodeName{NodeRole::uvm, std::nullopt};
  if (rest == "-uvm-tools") return NodeName{NodeRole::uvm_tools, std::nullopt};
  if (rest == "-modeset") return NodeName{NodeRole::modeset, std::nullopt};
  if (rest == "-nvlink") return NodeName{NodeRole::nvlink, std::nullopt};
  if (rest.starts_with(kSwitch) && rest.find('/') == std::string_view::npos)
    return NodeName{NodeRole::nvswitch, std::nullopt};
  if (rest.starts_with(kStorage) && is_number(rest.substr(kStorage.size())))
    return NodeName{NodeRole::storage, std::nullopt};
  if (rest.starts_with(kCap) && is_number(rest.substr(kCap.size()))) return NodeName{NodeRole::caps, std::nullopt};
  const auto minor = parse_unsigned(rest);
  if (!minor || *minor > kLastGpuMinor) return std::nullopt;
  return NodeName{NodeRole::gpu, static_cast<std::uint32_t>(*minor)};
}

}  // namespace

DeviceMajors parse_device_majors(std::string_view proc_devices) {
  DeviceMajors majors;
  majors.known = !proc_devices.empty();
  for (const auto& driver : kDriverNames)
    for (const std::uint32_t number : parse_character_majors(proc_devices, driver.name))
      majors.entries.push_back({number, driver.role});
  return majors;
}

std::optional<NodeName> parse_node_name(std::string_view name) noexcept {
  static constexpr std::string_view kNvidia = "nvidia", kCaps = "nvidia-caps/nvidia-cap", kVerbs = "infiniband/uverbs",
                                    kChannels = "nvidia-caps-imex-channels/channel";
  if (name == "gdrdrv") return NodeName{NodeRole::gdrcopy, std::nullopt};
  for (const auto& [prefix, role] :
       {std::pair(kCaps, NodeRole::caps), std::pair(kVerbs, NodeRole::rdma), std::pair(kChannels, NodeRole::imex)}) {
    if (name.starts_with(prefix) && is_number(name.substr(prefix.size()))) return NodeName{role, std::nullopt};
  }
  return name.starts_with(kNvidia) ? parse_nvidia_name(name.substr(kNvidia.size())) : std::nullopt;
}

bool ends_in_node_name(std::string_view path) noexcept {
  // seq_file writes the blank of " (deleted)" as \040.
  for (const std::string_view deleted : {" (deleted)", "\\040(deleted)"})
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
  const auto last = path.rfind('/');
  if (last == std::string_view::npos) return false;
  if (parse_node_name(path.substr(last + 1))) return true;
  const auto parent = last == 0 ? std::string_view::npos : path.rfind('/', last - 1);
  return parent != std::string_view::npos && parse_node_name(path.substr(parent + 1)).has_value();
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
  for (const auto& [number, role] : majors.entries) {
    if (number != device_major) continue;
    if (role == NodeRole::uvm && device_minor > 0)
      return NodeName{device_minor == 1 ? NodeRole::uvm_tools : NodeRole::other, std::nullopt};
    const bool is_verbs = device_minor >= kFirstVerbsMinor && device_minor <= kLastVerbsMinor;
    if (role == NodeRole::rdma && device_major == kInfinibandMajor && !is_verbs) return std::nullopt;
    return NodeName{role, std::nullopt};
  }
  return std::nullopt;
}

DeviceNodes DeviceNodes::read() {
  const auto devices = read_file("/proc/devices");
  const auto majors = parse_device_majors(devices ? *devices : std::string());
  std::vector<DeviceNode> nodes;
  bool complete = devices || is_gone(devices.error());
  for (const auto& folder : kFolders) complete = read_folder_nodes(folder, majors, nodes).has_value() && complete;
  DeviceNodes read(std::move(nodes), majors);
  read.complete_ = complete;
  return read;
}

DeviceNodes::DeviceNodes(std::vector<DeviceNode> nodes, DeviceMajors majors) : majors_(std::move(majors)) {
  for (auto& node : nodes) {
    const NodeKey key = key_of(node);
    if (node.device != 0 || node.inode != 0) by_file_.emplace(std::pair(node.device, node.inode), key);
    // Two names of one device are one node.
    if (!by_key_.emplace(key, 0).second) continue;
    has_files_ = has_files_ || key.kind == NodeKind::file;
    if (key.kind == NodeKind::character) node.device = node.inode = 0;  // the number says it all
    nodes_.push_back(std::move(node));
  }
  (void)sort();
}

std::optional<NodeKey> DeviceNodes::match(const FileIdentity& file) const noexcept {
  if (file.is_character()) {
    const NodeKey key{NodeKind::character, file.rdev, 0};
    if (classify_device_number(majors_, file.rdev) || by_key_.contains(key)) return key;
    return std::nullopt;
  }
  if (!has_files_) return std::nullopt;
  const NodeKey key{NodeKind::file, file.device, file.inode};
  return by_key_.contains(key) ? std::optional(key) : std::nullopt;
}

std::optional<NodeKey> DeviceNodes::match_file(std::uint64_t device, std::uint64_t inode) const noexcept {
  const auto found = by_file_.find({device, inode});
  return found == by_file_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> DeviceNodes::majors() const {
  std::set<std::uint32_t> majors = {DeviceMajors::kNvidia};
  for (const auto& entry : majors_.entries) majors.insert(entry.number);
  for (const auto& [key, index] : by_key_)
    if (key.kind == NodeKind::character) majors.insert(major(key.first));
  return {majors.begin(), majors.end()};
}

std::vector<std::uint64_t> DeviceNodes::file_systems() const {
  std::set<std::uint64_t> devices;
  for (const auto& [key, index] : by_key_)
    if (key.kind == NodeKind::file) devices.insert(key.first);
  return {devices.begin(), devices.end()};
}

bool DeviceNodes::has_driver() const noexcept {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const DeviceNode& node) {
    return node.role != NodeRole::gdrcopy && node.role != NodeRole::storage && node.role != NodeRole::rdma &&
           node.role != NodeRole::dma_buf;
  });
}

DeviceNode DeviceNodes::make_node(const NodeKey& key) const {
  DeviceNode node;
  if (key.kind == NodeKind::character) {
    const auto name = classify_device_number(majors_, key.first).value_or(NodeName{});
    node.role = name.role;
    node.minor = name.minor;
    node.rdev = key.first;
    node.path = default_path(name, key.first);
    return node;
  }
  node.device = key.first;
  node.inode = key.second;
  if (key.kind == NodeKind::dma_buf) {
    node.role = NodeRole::dma_buf;
    node.path = "/dmabuf:[" + std::to_string(key.second) + "]";
  }
  return node;
}

std::size_t DeviceNodes::index_of(const NodeKey& key) {
  const auto [entry, added] = by_key_.try_emplace(key, nodes_.size());
  if (added) nodes_.push_back(make_node(key));
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
