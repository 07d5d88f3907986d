// SPDX-License-Identifier: Apache-2.0
#include "probe/pipes.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "model/find_by_pid.h"

namespace vacate {
namespace {

constexpr unsigned kReads = 1, kWrites = 2;
constexpr int kLastStandardFd = 2;

/// What is asked of one descriptor, on top of what the walk saw.
struct End {
  ChannelEnd at;
  unsigned access = 0;         ///< kReads, kWrites
  bool close_on_exec = false;  ///< of candidates' ends only, as the next two
  double changed = 0;
  bool described = false;
};

using EndsByInode = std::map<std::uint64_t, std::vector<End>>;

const UnixSocket* find_socket(const std::vector<UnixSocket>& sockets, std::uint64_t inode) {
  const auto at =
      std::lower_bound(sockets.begin(), sockets.end(), inode,
                       [](const UnixSocket& socket, std::uint64_t wanted) { return socket.inode < wanted; });
  return at != sockets.end() && at->inode == inode ? &*at : nullptr;
}

/// One end of a socketpair(2), as far as can be told: connected, and neither end has a name.
bool is_pair_end(const std::vector<UnixSocket>& sockets, const UnixSocket& socket) {
  if (!socket.stream || socket.listening || socket.named) return false;
  const auto* peer = find_socket(sockets, socket.peer);
  return peer != nullptr && !peer->named && peer->peer == socket.inode;
}

std::string directory_of(const ChannelEnd& end) {
  return end.tid == end.pid ? std::string() : "task/" + std::to_string(end.tid) + "/";
}

/// Asks about one descriptor; leaves the end unasked where it is another file by now. An error: it may be either end.
Result<void> describe(const ProcDirectory& process, bool candidate, End& end) {
  const std::string prefix = directory_of(end.at);
  const std::string number = std::to_string(end.at.fd);
  const std::string name = prefix + "fd/" + number;
  // The permission bits of the link say how it was opened: one call, where fdinfo takes three.
  const auto link = process.identity(name.c_str(), Links::keep);
  if (!link) return link.error();
  end.access = ((link->mode & 0400U) != 0 ? kReads : 0) | ((link->mode & 0200U) != 0 ? kWrites : 0);
  if (!candidate) return {};
  const auto file = process.identity(name.c_str());
  if (!file) return file.error();
  if (file->inode != end.at.inode) {
    end.access = 0;
    return {};
  }
  const auto text = process.read((prefix + "fdinfo/" + number).c_str());
  if (!text) return text.error();
  const auto info = parse_fdinfo(*text);
  if (!info) return {};
  end.changed = file->changed;
  end.close_on_exec = info->close_on_exec();
  end.described = true;
  return {};
}

/// Asks the kernel whether anybody at all has the opposite end of this pipe, by opening this end once more for a
/// moment: poll(2) then tells hang-up or error. Nothing: it cannot be asked. The descriptor is taken with O_PATH first,
/// so that no file is opened but a pipe, whatever the process does meanwhile.
std::optional<bool> somebody_has_other_end(const ProcDirectory& root, const End& end) {
  const std::string name = std::to_string(end.at.pid) + "/" + directory_of(end.at) + "fd/" + std::to_string(end.at.fd);
  const UniqueFd path(openat(root.descriptor(), name.c_str(), O_PATH | O_CLOEXEC));
  const auto file = path ? read_identity(path.get()) : Result<FileIdentity>(system_error("open"));
  if (!file || !file->is_fifo() || file->inode != end.at.inode) return std::nullopt;
  const int mode = end.access == kReads ? O_RDONLY : O_WRONLY;
  const UniqueFd pipe(
      open(("/proc/self/fd/" + std::to_string(path.get())).c_str(), mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!pipe) return errno == ENXIO ? std::optional(false) : std::nullopt;  // ENXIO: to be written, and nobody reads
  pollfd wait{pipe.get(), 0, 0};
  if (poll(&wait, 1, 0) < 0) return std::nullopt;
  return (wait.revents & (POLLHUP | POLLERR)) == 0;
}

class PipeReader {
 public:
  PipeReader(const PipeInputs& inputs, std::vector<Process>& processes) : inputs_(inputs), processes_(processes) {}

  std::vector<pid_t> run() {
    choose();
    ask();
    for (auto& [inode, ends] : ends_)
      for (auto& end : ends) report(end);
    for (auto& process : processes_)
      std::sort(process.pipes.begin(), process.pipes.end(),
                [](const PipeEnd& a, const PipeEnd& b) { return std::tie(a.fd, a.inode) < std::tie(b.fd, b.inode); });
    return {unread_.begin(), unread_.end()};
  }

 private:
  bool is_candidate(const ChannelEnd& end) const { return end.fd > kLastStandardFd && candidates_.contains(end.pid); }

  /// Every end of each pipe and socket pair that a candidate has an end of.
  void choose() {
    for (const auto& process : processes_)
      if (process.detailed) candidates_.insert(process.key.pid);
    for (const auto& end : inputs_.channels) {
      if (!is_candidate(end)) continue;
      if (!end.is_socket) {
        ends_[end.inode];
        continue;
      }
      const auto* socket = find_socket(inputs_.unix_sockets, end.inode);
      if (socket == nullptr || !is_pair_end(inputs_.unix_sockets, *socket)) continue;
      ends_[end.inode];
      ends_[socket->peer];
    }
    for (const auto& end : inputs_.channels) {
      const auto known = ends_.find(end.inode);
      if (known != ends_.end()) known->second.push_back({end});
    }
  }

  /// Process by process, so that each directory is opened once.
  void ask() {
    std::vector<End*> order;
    for (auto& [inode, ends] : ends_)
      for (auto& end : ends) order.push_back(&end);
    std::sort(order.begin(), order.end(), [](const End* a, const End* b) {
      return std::tie(a->at.pid, a->at.tid, a->at.fd) < std::tie(b->at.pid, b->at.tid, b->at.fd);
    });
    std::optional<Result<ProcDirectory>> process;
    for (End* end : order) {
      if (!process || end->at.pid != opened_) {
        opened_ = end->at.pid;
        process.emplace(inputs_.root.open(opened_));
      }
      const auto asked = *process ? describe(**process, is_candidate(end->at), *end) : Result<void>(process->error());
      if (asked) continue;
      const bool is_gone = asked.error().code == ErrorCode::gone;
      end->access = is_gone ? 0 : kReads | kWrites;
      if (!is_gone) unread_.insert(opened_);
    }
  }

  void report(const End& end) {
    if (!end.described || !is_candidate(end.at)) return;
    Process* process = find_by_pid(processes_, end.at.pid);
    if (process == nullptr) return;
    PipeEnd pipe;
    pipe.fd = end.at.fd;
    pipe.inode = end.at.inode;
    pipe.is_socket = end.at.is_socket;
    pipe.close_on_exec = end.close_on_exec;
    // Older than the machine: the clock was set in between, and the difference means nothing (facts.md 3.7).
    static constexpr double kSlack = 1;
    if (end.changed < inputs_.boot_time - kSlack || process->started == 0) {
      pipe.created_after_start = Unknown::implausible;
    } else {
      pipe.created_after_start = end.changed - process->started;
    }
    pipe.reads = (end.access & kReads) != 0;
    pipe.other_end = end.at.is_socket ? socket_partners(end) : pipe_partners(end);
    process->pipes.push_back(std::move(pipe));
  }

  Reading<std::vector<pid_t>> pipe_partners(const End& end) const {
    const unsigned wanted = (end.access == kReads) ? kWrites : (end.access == kWrites) ? kReads : kReads | kWrites;
    const auto partners = pids_with(end.at.inode, wanted);
    if (!partners.empty()) return inputs_.everybody_seen ? Reading(partners) : Unknown::no_permission;
    // Nobody to be seen. The kernel counts every end, those too that no table shows.
    const auto somebody = somebody_has_other_end(inputs_.root, end);
    if (somebody) return *somebody ? Reading<std::vector<pid_t>>(Unknown::implausible) : Reading(partners);
    return inputs_.everybody_seen ? Reading(partners) : Unknown::no_permission;
  }

  /// A pair's other end is alive, or the kernel would not have named it. If no table shows it, it is somewhere unseen.
  /// A closed one is not listed at all: a client whose server died looks the same, and that is no proof of anything.
  Reading<std::vector<pid_t>> socket_partners(const End& end) const {
    const auto* socket = find_socket(inputs_.unix_sockets, end.at.inode);
    const auto partners = socket != nullptr ? pids_with(socket->peer, kReads | kWrites) : std::vector<pid_t>{};
    if (partners.empty()) return Unknown::implausible;
    return inputs_.everybody_seen ? Reading(partners) : Unknown::no_permission;
  }

  std::vector<pid_t> pids_with(std::uint64_t inode, unsigned access) const {
    std::set<pid_t> pids;
    const auto ends = ends_.find(inode);
    if (ends == ends_.end()) return {};
    for (const auto& end : ends->second)
      if ((end.access & access) != 0) pids.insert(end.at.pid);
    return {pids.begin(), pids.end()};
  }

  const PipeInputs& inputs_;
  std::vector<Process>& processes_;
  std::set<pid_t> candidates_;
  EndsByInode ends_;
  pid_t opened_ = 0;
  std::set<pid_t> unread_;
};

}  // namespace

std::vector<pid_t> read_pipes(const PipeInputs& inputs, std::vector<Process>& processes) {
  return PipeReader(inputs, processes).run();
}

}  // namespace vacate
