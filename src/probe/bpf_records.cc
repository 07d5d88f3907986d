// SPDX-License-Identifier: Apache-2.0
#include "probe/bpf_records.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

#include "model/find_by_pid.h"
#include "probe/bpf/holders_records.h"

namespace vacate {
namespace {

constexpr unsigned kMinorBits = 20;
constexpr unsigned kKnownFlags = VACATE_PATH_ONLY | VACATE_LONG | VACATE_KIND_BITS;

std::size_t size_of(std::uint32_t kind) noexcept {
  return (kind & VACATE_LONG) != 0 ? sizeof(vacate_long_record) : sizeof(vacate_short_record);
}

/// The table of the process before those of its threads.
template <class Hit>
auto order_of(const Hit& hit) noexcept {
  return std::tuple(hit.pid, hit.tid != hit.pid, hit.tid, hit.fd);
}

template <class Hit>
void sort_hits(std::vector<Hit>& hits) {
  const auto less = [](const Hit& a, const Hit& b) { return order_of(a) < order_of(b); };
  if (!std::is_sorted(hits.begin(), hits.end(), less)) std::sort(hits.begin(), hits.end(), less);
}

}  // namespace

std::uint64_t user_device(std::uint32_t kernel_device) noexcept {
  return makedev(kernel_device >> kMinorBits, kernel_device & ((1U << kMinorBits) - 1));
}

std::uint32_t kernel_device(std::uint64_t user_device) noexcept {
  return (major(user_device) << kMinorBits) | minor(user_device);
}

BpfRecordStream::Cut BpfRecordStream::cut_record(std::string_view& bytes, BpfRecord& record) noexcept {
  std::uint32_t kind = 0;
  if (bytes.size() < sizeof kind) return Cut::partial;
  std::memcpy(&kind, bytes.data(), sizeof kind);
  record.kind = kind & VACATE_KIND_BITS;
  if (record.kind == VACATE_NONE || record.kind > VACATE_RESTLESS || (kind & ~kKnownFlags) != 0) return Cut::malformed;
  if (bytes.size() < size_of(kind)) return Cut::partial;
  vacate_long_record raw{};
  std::memcpy(&raw, bytes.data(), size_of(kind));
  bytes.remove_prefix(size_of(kind));
  record.path_only = (kind & VACATE_PATH_ONLY) != 0;
  record.pid = raw.head.pid;
  record.tid = raw.head.tid;
  record.fd = raw.head.fd;
  record.inode = raw.head.inode;
  record.device = user_device(raw.device);
  record.rdev = user_device(raw.number);
  record.table = raw.table;
  return Cut::record;
}

/// Whoever a walk over /proc would not look into is left out here as well.
bool BpfFindings::is_looked_into(pid_t pid) {
  if (pid == last_pid_) return last_answer_;
  const auto* process = find_by_pid(processes_, pid);
  last_pid_ = pid;
  last_answer_ = process != nullptr && !process->kernel_thread && !is_gone(*process);
  return last_answer_;
}

/// Threads that share a table which is not their process's: it counts once.
bool BpfFindings::is_known_table(const BpfRecord& record) {
  if (record.tid == record.pid) return false;
  const auto first = tables_.try_emplace({record.pid, record.table}, record.tid).first->second;
  if (first == record.tid) return false;
  const auto [sharer, added] = sharers_.try_emplace(record.tid, false);
  if (added) sharer->second = share_(first, record.tid);
  return sharer->second;
}

void BpfFindings::take_descriptor(const BpfRecord& record) {
  if (!is_looked_into(record.pid)) return;
  if (record.kind == VACATE_SHARER) {
    sharers[record.pid].push_back(record.tid);
    return;
  }
  if (record.kind == VACATE_RESTLESS) {
    restless.insert(record.pid);
    return;
  }
  if (is_known_table(record)) return;
  NodeHit hit{record.pid, record.tid, record.fd, {}};
  switch (record.kind) {
    case VACATE_PIPE:
    case VACATE_SOCKET:
      channels.push_back({record.inode, record.pid, record.tid, record.fd, record.kind == VACATE_SOCKET});
      return;
    case VACATE_ANONYMOUS:
    case VACATE_BUFFER:
      to_ask.push_back(hit);
      return;
    case VACATE_FILE:
      if (is_watching_) {
        files.push_back({record.pid, record.tid, record.fd, record.device, record.inode});
        return;
      }
      break;
    default:
      break;
  }
  const std::uint32_t mode = record.kind == VACATE_CHARACTER ? S_IFCHR : S_IFREG;
  const auto node = nodes_.match({mode, record.device, record.inode, record.rdev, 0});
  if (!node || record.path_only) return;  // O_PATH never reached the driver
  hit.node = *node;
  hits.push_back(hit);
}

void BpfFindings::take_mapping(const BpfRecord& record) {
  if (!is_looked_into(record.pid) || record.kind >= VACATE_SHARER) return;
  std::optional<NodeKey> node;
  if (record.kind == VACATE_BUFFER) {
    node = NodeKey{NodeKind::dma_buf, record.device, record.inode};
  } else if (is_watching_) {
    node = NodeKey{NodeKind::file, record.device, record.inode};
  } else {
    const std::uint32_t mode = record.kind == VACATE_CHARACTER ? S_IFCHR : S_IFREG;
    node = nodes_.match({mode, record.device, record.inode, record.rdev, 0});
  }
  if (node) ++mapped_[record.pid][record.tid][*node];
}

void sort_as_walked(std::vector<NodeHit>& hits, std::vector<FileHit>& files) {
  sort_hits(hits);
  sort_hits(files);
}

void BpfFindings::leave_out_restless() {
  if (restless.empty()) return;
  const auto is_restless = [&](const auto& found) { return restless.contains(found.pid); };
  std::erase_if(hits, is_restless);
  std::erase_if(files, is_restless);
  std::erase_if(to_ask, is_restless);
  std::erase_if(sharers, [&](const auto& entry) { return restless.contains(entry.first); });
  channels.erase_processes(restless);
}

/// A thread with a table of its own brings the memory of its process once more, and all threads of one whose leader has
/// ended do. The one who brought most was not about to go.
Mappings BpfFindings::mappings() const {
  Mappings mappings;
  const auto total = [](const auto& thread) {
    return std::accumulate(thread.second.begin(), thread.second.end(), std::size_t{0},
                           [](std::size_t sum, const auto& node) { return sum + node.second; });
  };
  for (const auto& [pid, threads] : mapped_) {
    const auto most = std::max_element(threads.begin(), threads.end(),
                                       [&](const auto& a, const auto& b) { return total(a) < total(b); });
    for (const auto& [node, count] : most->second) mappings.hits.push_back({pid, node, count});
  }
  return mappings;
}

}  // namespace vacate
