// SPDX-License-Identifier: Apache-2.0
// What the simulated driver does on open, release and ioctl. Transport-free: it gets file ids and bytes and returns
// errno values and bytes; how they come and go is fuse_server.h's affair.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lab/driver/clients.h"
#include "lab/driver/driver.h"
#include "lab/driver/nodes.h"
#include "lab/driver/process_identity.h"

namespace lab {

using FileId = std::uint64_t;

constexpr std::int64_t kForEver = -1;

/// The answer to one ioctl.
struct IoctlAnswer {
  enum class When {
    now,
    after_interrupt,  ///< `delay_ms` after the caller got a signal
    never,
  };
  int error = 0;         ///< errno, 0 for success
  std::string out = {};  ///< bytes for the caller
  When when = When::now;
  std::int64_t delay_ms = 0;     ///< or kForEver
  bool answers_waiting = false;  ///< what waits on the same file is to be answered too
};

class DriverCore {
 public:
  /// `config` has to be complete()d.
  DriverCore(DriverConfig config, ProcessTable processes);

  [[nodiscard]] const NodeTable& nodes() const noexcept { return nodes_; }

  /// Opens `node`. Returns errno, and the file in `id` on success.
  [[nodiscard]] int open(const Node& node, FileId& id);
  /// The last reference to an open file is gone.
  void release(FileId id);
  /// How late a close of a descriptor of `id` by thread `caller_tid` is answered: milliseconds or kForEver.
  [[nodiscard]] std::int64_t take_flush_delay_ms(FileId id, pid_t caller_tid);
  /// How late a read through `id` is answered: milliseconds or kForEver.
  [[nodiscard]] std::int64_t read_delay_ms(FileId id) const { return files_.at(id).read_delay_ms; }
  /// What reading the lab's control file gives: the state as it was when the file was opened.
  [[nodiscard]] std::string_view text(FileId id) const { return files_.at(id).text; }

  [[nodiscard]] IoctlAnswer ioctl(FileId id, pid_t caller_tid, unsigned long command, std::string_view in);

 private:
  struct OpenFile {
    NodeKind kind = NodeKind::directory;
    std::uint32_t gpu_index = 0;
    Token own = 0;                       ///< the client this control file is for
    std::vector<Token> registered = {};  ///< clients it keeps, or whose memory it imports
    std::int64_t flush_delay_ms = 0;
    std::int64_t read_delay_ms = 0;
    std::map<pid_t, std::int64_t> exit_delays_ms = {};  ///< by process, for its next close
    std::string text = {};
  };

  IoctlAnswer ioctl_on_ctl(const OpenFile& file, pid_t caller_tid, unsigned long command, std::string_view in);
  int allocate(const OpenFile& file, pid_t caller_tid, const AllocateRequest& request);
  int register_with(OpenFile& file, const RegisterRequest& request);
  int delay_exit(OpenFile& file, pid_t caller_tid, const DelayRequest& request);
  int set_gpu_state(const GpuStateRequest& request);
  [[nodiscard]] SystemReply system() const;
  int describe(GpuQuery& query) const;
  int list(pid_t caller_tid, ProcessPage& page);

  [[nodiscard]] std::uint64_t used(std::uint32_t gpu, Clock::time_point now) const;
  [[nodiscard]] std::vector<ProcessRow> rows(std::uint32_t gpu, ListKind kind, const ProcessIdentity& caller) const;
  [[nodiscard]] std::string state_text() const;

  DriverConfig config_;
  NodeTable nodes_;
  ProcessTable processes_;
  Clients clients_;
  std::map<FileId, OpenFile> files_;
  FileId last_file_ = 0;
};

}  // namespace lab
