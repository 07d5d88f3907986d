// SPDX-License-Identifier: Apache-2.0
// The records of the programs in the kernel, from a stream of bytes into what the scan counts in. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/mappings.h"
#include "probe/walk.h"

namespace vacate {

/// One record, whichever its form. Numbers of devices as makedev(3) packs them.
struct BpfRecord {
  unsigned kind = 0;  ///< enum vacate_kind without its flags
  bool path_only = false;
  pid_t pid = 0;
  pid_t tid = 0;
  int fd = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t rdev = 0;
  std::uint64_t table = 0;  ///< the descriptor table; 0: that of the process
};

/// st_dev of the kernel's own form, and back.
[[nodiscard]] std::uint64_t user_device(std::uint32_t kernel_device) noexcept;
[[nodiscard]] std::uint32_t kernel_device(std::uint64_t user_device) noexcept;

/// Cuts a stream that comes in pieces of any size.
class BpfRecordStream {
 public:
  /// Hands each record over that is whole. False: what came is no record, and nothing more is taken.
  template <class Take>
  [[nodiscard]] bool feed(std::string_view piece, const Take& take) {
    std::string joined;
    if (!partial_.empty()) {
      joined = std::move(partial_) + std::string(piece);
      piece = joined;
    }
    BpfRecord record;
    Cut cut = Cut::record;
    while ((cut = cut_record(piece, record)) == Cut::record) take(record);
    partial_ = piece;
    return cut != Cut::malformed;
  }
  /// Every record came whole.
  [[nodiscard]] bool at_boundary() const noexcept { return partial_.empty(); }

 private:
  enum class Cut { record, partial, malformed };
  /// Takes the first record off `bytes`.
  static Cut cut_record(std::string_view& bytes, BpfRecord& record) noexcept;

  std::string partial_;
};

/// The order in which a walk over /proc finds them.
void sort_as_walked(std::vector<NodeHit>& hits, std::vector<FileHit>& files);

/// What of the processes known to the walk the records are about.
class BpfFindings {
 public:
  /// Have two threads one descriptor table? Addresses of tables hint at it, but one may be in its second life.
  using ShareTable = std::function<bool(pid_t a, pid_t b)>;
  BpfFindings(const std::vector<Process>& processes, const DeviceNodes& nodes, bool is_watching, ShareTable share)
      : processes_(processes), nodes_(nodes), is_watching_(is_watching), share_(std::move(share)) {}

  void take_descriptor(const BpfRecord& record);
  void take_mapping(const BpfRecord& record);
  /// Forgets what came of restless processes.
  void leave_out_restless();
  [[nodiscard]] Mappings mappings() const;

  std::vector<NodeHit> hits;
  ChannelList channels;  ///< in the order in which they came
  std::vector<FileHit> files;
  std::vector<NodeHit> to_ask;  ///< rings and buffers, which numbers alone do not tell; their nodes are empty
  /// By process: threads that were passed before the main thread, when they had its table.
  std::map<pid_t, std::vector<pid_t>> sharers;
  std::set<pid_t> restless;  ///< processes that exchange what they have open too fast: what came of them is not all

 private:
  [[nodiscard]] bool is_looked_into(pid_t pid);
  [[nodiscard]] bool is_known_table(const BpfRecord& record);

  const std::vector<Process>& processes_;
  const DeviceNodes& nodes_;
  bool is_watching_;
  ShareTable share_;
  pid_t last_pid_ = 0;
  bool last_answer_ = false;
  std::map<std::pair<pid_t, std::uint64_t>, pid_t> tables_;  ///< by process and table: the first thread with it
  std::map<pid_t, bool> sharers_;                            ///< threads: the table counts as another's already
  std::map<pid_t, std::map<pid_t, std::map<NodeKey, unsigned>>> mapped_;  ///< by process and thread
};

}  // namespace vacate
