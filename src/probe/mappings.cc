// SPDX-License-Identifier: Apache-2.0
#include "probe/mappings.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace vacate {
namespace {

constexpr std::string_view kBuffer = "/dmabuf:";

enum class Status : std::uint8_t { ok, gone, denied, failed };

Status status_of(const Error& error) noexcept {
  if (error.code == ErrorCode::gone) return Status::gone;
  return error.code == ErrorCode::denied ? Status::denied : Status::failed;
}

}  // namespace

void MapsMatcher::start() {
  partial_.clear();
  found_.clear();
  lines_ = 0;
}

void MapsMatcher::feed(std::string_view piece) {
  for (auto end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    if (partial_.empty()) {
      take_line(piece.substr(0, end));
    } else {
      partial_ += piece.substr(0, end);
      take_line(partial_);
      partial_.clear();
    }
    piece.remove_prefix(end + 1);
  }
  partial_ += piece;
}

void MapsMatcher::take_line(std::string_view line) {
  ++lines_;
  const auto mapping = parse_maps_line(line);
  if (!mapping || mapping->inode == 0) return;
  // Everything from the device column on names the file; range, permissions and offset stand before it.
  std::size_t column = 0;
  for (int skip = 0; skip < 3; ++skip) column = line.find(' ', column) + 1;
  const auto file = line.substr(column);
  if (file != last_file_) {  // segments of one file follow each other
    last_file_ = file;
    auto known = known_.find(file);
    if (known != known_.end()) {
      last_node_ = known->second;
    } else {
      const auto identified = identify_(*mapping);
      last_node_ = identified.node;
      if (identified.certain) known_.emplace(std::string(file), identified.node);
    }
  }
  if (last_node_) ++found_[*last_node_];
}

/// Lives in the child; holds no descriptor before the fork, for the child would lose it.
class MappingScan::Reader {
 public:
  Reader(const DeviceNodes& nodes, std::vector<std::uint64_t> watched)
      : nodes_(nodes),
        watched_(std::move(watched)),
        matcher_([this](const MapsLine& line) { return identify(line); }) {}

  void read(pid_t pid, FrameWriter& answer) {
    Status status = read_maps(pid);
    if (status == Status::ok && matcher_.empty()) status = read_live_thread(pid);
    const auto& found = matcher_.found();
    // Most processes map no node: about them nothing is said.
    if (status == Status::gone || (status == Status::ok && found.empty())) return;
    answer.number(static_cast<std::uint8_t>(status));
    answer.number(static_cast<std::uint32_t>(status == Status::ok ? found.size() : 0));
    if (status != Status::ok) return;
    for (const auto& [node, count] : found) {
      answer.number(static_cast<std::uint8_t>(node.kind));
      answer.number(node.first);
      answer.number(node.second);
      answer.number(static_cast<std::uint32_t>(count));
    }
  }

 private:
  Status read_maps(pid_t pid) {
    matcher_.start();
    unidentified_ = false;
    if (!root_) {
      auto root = ProcDirectory::open_root();
      if (!root) return Status::failed;
      root_.emplace(*std::move(root));
    }
    auto process = root_->open(pid);
    if (!process) return status_of(process.error());
    process_.emplace(*std::move(process));
    const auto maps = process_->open_file("maps");
    if (!maps) return status_of(maps.error());
    for (;;) {
      const ssize_t n = ::read(maps->get(), piece_.data(), piece_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return status_of(system_error("maps"));
      if (n == 0) return unidentified_ ? Status::failed : Status::ok;
      matcher_.feed({piece_.data(), static_cast<std::size_t>(n)});
    }
  }

  /// The memory of a process whose leader has ended is seen through its threads only. /proc/TID is not listed but is
  /// there.
  Status read_live_thread(pid_t pid) {
    const auto thread = find_live_thread(*process_, pid);
    if (!thread) return status_of(thread.error());
    return *thread ? read_maps((*thread)->tid) : Status::ok;
  }

  MapsMatcher::Identified identify(const MapsLine& line) {
    if (!watched_.empty()) {
      const bool is_watched = std::find(watched_.begin(), watched_.end(), line.device) != watched_.end();
      if (!is_watched) return {std::nullopt, true};
      return {NodeKey{NodeKind::file, line.device, line.inode}, true};
    }
    const auto by_file = nodes_.match_file(line.device, line.inode);
    if (by_file && by_file->kind == NodeKind::file) return {by_file, true};
    // The device column is that of the file system. Only the link in map_files leads to the file itself (facts.md 3.1);
    // it wants CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. Without them nodes that vacate's own /dev shows are still
    // found.
    const std::string name = "map_files/" + std::string(line.range);
    const auto file = process_->identity(name.c_str());
    if (file && file->is_typeless() && line.path.starts_with(kBuffer))
      return {NodeKey{NodeKind::dma_buf, file->device, file->inode}, true};
    if (file) return {nodes_.match(*file), true};
    const bool is_expected = file.error().code == ErrorCode::gone || file.error().code == ErrorCode::denied;
    // Of the rest, dead file systems for one, only what is called as a node is could be one.
    const bool may_be_node = ends_in_node_name(line.path) || line.path.starts_with(kBuffer);
    unidentified_ = unidentified_ || (!by_file && !is_expected && may_be_node);
    return {by_file, file.error().code != ErrorCode::gone};
  }

  const DeviceNodes& nodes_;
  std::vector<std::uint64_t> watched_;
  std::optional<ProcDirectory> root_, process_;
  MapsMatcher matcher_;
  bool unidentified_ = false;  ///< something mapped may be a node and could not be asked
  std::array<char, 32768> piece_;
};

MappingScan::MappingScan(std::vector<pid_t> pids, const DeviceNodes& nodes, std::vector<std::uint64_t> watched)
    : pids_(std::move(pids)),
      reader_(std::make_unique<Reader>(nodes, std::move(watched))),
      pass_("vacate-maps", pids_.size(),
            [this](std::size_t index, FrameWriter& answer) { reader_->read(pids_[index], answer); }) {}

MappingScan::~MappingScan() = default;

Mappings MappingScan::finish() {
  static constexpr std::size_t kRowSize = 21;
  Mappings mappings;
  const auto missing = pass_.finish([&](std::size_t index, std::string_view bytes) {
    FrameReader answer(bytes);
    const auto status = static_cast<Status>(answer.number<std::uint8_t>());
    const auto rows = answer.count(kRowSize);
    std::vector<MappingHit> hits;
    bool known_kinds = true;
    for (std::uint32_t i = 0; i < rows; ++i) {
      MappingHit hit;
      hit.pid = pids_[index];
      const auto kind = answer.number<std::uint8_t>();
      known_kinds = known_kinds && kind <= static_cast<std::uint8_t>(NodeKind::dma_buf);
      hit.node.kind = known_kinds ? static_cast<NodeKind>(kind) : NodeKind::character;
      hit.node.first = answer.number<std::uint64_t>();
      hit.node.second = answer.number<std::uint64_t>();
      hit.count = answer.number<std::uint32_t>();
      hits.push_back(hit);
    }
    if (status == Status::denied) {
      mappings.denied.push_back(pids_[index]);
    } else if (status != Status::ok || !answer.complete() || !known_kinds) {
      mappings.failed.push_back(pids_[index]);
    } else {
      mappings.hits.insert(mappings.hits.end(), hits.begin(), hits.end());
    }
  });
  for (const auto index : missing) mappings.stuck.push_back(pids_[index]);
  return mappings;
}

}  // namespace vacate
