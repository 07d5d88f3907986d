// SPDX-License-Identifier: Apache-2.0
// Mappings of GPU nodes: a mapping keeps the file open after its descriptor is closed (facts.md 2.2.3). Reading maps
// can block for ever, so it is done in an expendable child for all processes at once; a process that blocks is skipped
// and said.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/device_nodes.h"
#include "os/expendable_pass.h"
#include "os/procfs.h"

namespace vacate {

struct MappingHit {
  pid_t pid = 0;
  NodeKey node;
  unsigned count = 0;
};

struct Mappings {
  std::vector<MappingHit> hits;
  std::vector<pid_t> denied;
  std::vector<pid_t> stuck;  ///< did not answer in time
  std::vector<pid_t> failed;
};

/// Runs beside the walk over descriptors: started first, asked last. Refers to `nodes` until finish(). Where file
/// systems (st_dev) are `watched`, files on those are found instead, as nodes of kind `file`: this looks for shared
/// memory.
class MappingScan {
 public:
  MappingScan(std::vector<pid_t> pids, const DeviceNodes& nodes, std::vector<std::uint64_t> watched = {});
  ~MappingScan();
  [[nodiscard]] Mappings finish();

 private:
  class Reader;
  std::vector<pid_t> pids_;
  std::unique_ptr<Reader> reader_;
  ExpendablePass pass_;
};

/// Collects the nodes in lines of maps that come in pieces. Pure: `identify` answers which node a mapping is of, once
/// for each file.
class MapsMatcher {
 public:
  struct Identified {
    std::optional<NodeKey> node;
    bool certain = true;  ///< false: the mapping went away meanwhile; ask again for the next one of the file
  };
  using Identify = std::function<Identified(const MapsLine& line)>;
  explicit MapsMatcher(Identify identify) : identify_(std::move(identify)) {}

  void start();
  void feed(std::string_view piece);
  /// Nodes mapped by the process since start(), with the number of mappings.
  [[nodiscard]] const std::map<NodeKey, unsigned>& found() const noexcept { return found_; }
  [[nodiscard]] bool empty() const noexcept { return lines_ == 0; }

 private:
  void take_line(std::string_view line);

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  Identify identify_;
  std::string partial_;
  std::string last_file_;
  std::optional<NodeKey> last_node_;
  /// By device, inode and path as the line writes them: the first two alone are not unique on btrfs and overlayfs.
  std::unordered_map<std::string, std::optional<NodeKey>, Hash, std::equal_to<>> known_;
  std::map<NodeKey, unsigned> found_;
  std::size_t lines_ = 0;
};

}  // namespace vacate
