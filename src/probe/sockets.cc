// SPDX-License-Identifier: Apache-2.0
#include "probe/sockets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/find_by_pid.h"

namespace vacate {
namespace {

std::string table_prefix(const ChannelEnd& end) {
  return end.tid == end.pid ? std::string() : "task/" + std::to_string(end.tid) + "/";
}

Result<std::uint64_t> net_namespace_of(const ProcDirectory& root, const ChannelEnd& end) {
  const auto link = root.read_link((std::to_string(end.pid) + "/" + table_prefix(end) + "ns/net").c_str());
  if (!link) return link.error();
  return parse_bracketed_inode(*link).value_or(0);
}

using Inodes = std::set<std::uint64_t>;

/// A kernel without one of the families has no such table.
Result<Inodes> read_listening(const ProcDirectory& root, const ChannelEnd& end) {
  Inodes inodes;
  for (const char* family : {"tcp", "tcp6"}) {
    const auto text = root.read((std::to_string(end.pid) + "/" + table_prefix(end) + "net/" + family).c_str(),
                                std::size_t{64} << 20U);
    if (!text && text.error().code != ErrorCode::gone) return text.error();
    if (!text) continue;
    const auto found = parse_listening_inodes(*text);
    inodes.insert(found.begin(), found.end());
  }
  return inodes;
}

/// Asks only sockets that can have something queued: a look at each in a machine full of connections would take
/// seconds.
class InFlightSearch {
 public:
  InFlightSearch(const ProcDirectory& root, const std::vector<UnixSocket>& unix_sockets)
      : root_(root), unix_sockets_(unix_sockets) {
    const auto own = root.read_link("self/ns/net");
    own_namespace_ = own ? parse_bracketed_inode(*own).value_or(0) : 0;
  }

  void take(const ChannelEnd& end) {
    if (!end.is_socket || !may_have_queued(end) || !asked_.insert(end.inode).second) return;
    if (asked_.size() > kMostAsked) {
      scan_.complete = false;
      return;
    }
    const auto text =
        root_.read((std::to_string(end.pid) + "/" + table_prefix(end) + "fdinfo/" + std::to_string(end.fd)).c_str());
    scan_.complete = scan_.complete && (text || text.error().code == ErrorCode::gone);
    const auto info = text ? parse_fdinfo(*text) : std::nullopt;
    if (info && info->scm_fds > 0) scan_.queued.push_back({end.pid, end.fd, info->scm_fds});
  }

  [[nodiscard]] InFlightScan& scan() noexcept { return scan_; }

 private:
  static constexpr std::size_t kMostAsked = 4096;

  bool may_have_queued(const ChannelEnd& end) {
    const auto at =
        std::lower_bound(unix_sockets_.begin(), unix_sockets_.end(), end.inode,
                         [](const UnixSocket& socket, std::uint64_t wanted) { return socket.inode < wanted; });
    if (at != unix_sockets_.end() && at->inode == end.inode)
      return at->queued > 0 || !at->stream;  // an empty datagram carries, too
    // Of a kind without descriptors, or of another network namespace.
    const auto [theirs, added] = namespaces_.try_emplace(end.pid, 0);
    if (added) theirs->second = net_namespace_of(root_, end).value_or(0);
    return unix_sockets_.empty() || theirs->second != own_namespace_;
  }

  const ProcDirectory& root_;
  const std::vector<UnixSocket>& unix_sockets_;
  std::uint64_t own_namespace_ = 0;
  std::map<pid_t, std::uint64_t> namespaces_;
  Inodes asked_;
  InFlightScan scan_;
};

}  // namespace

std::vector<pid_t> read_listeners(const ProcDirectory& root, const ChannelList& channels,
                                  std::vector<Process>& processes) {
  std::map<std::uint64_t, Result<Inodes>> listening;  // by network namespace
  std::map<pid_t, const Inodes*> of_process;          // nullptr: it is gone, or could not be asked
  std::vector<pid_t> unread;
  for (const auto& end : channels) {
    if (!end.is_socket) continue;
    auto* process = find_by_pid(processes, end.pid);
    if (process == nullptr || !process->detailed || process->listens) continue;
    const auto [known, added] = of_process.try_emplace(end.pid, nullptr);
    if (added) {
      const auto inode = net_namespace_of(root, end);
      auto table = inode ? listening.find(*inode) : listening.end();
      if (inode && table == listening.end()) table = listening.emplace(*inode, read_listening(root, end)).first;
      const bool is_read = inode && table->second;
      const bool is_gone = !inode && inode.error().code == ErrorCode::gone;
      known->second = is_read ? &*table->second : nullptr;
      process->listens = !is_read && !is_gone;
      if (process->listens) unread.push_back(end.pid);
    }
    if (known->second != nullptr) process->listens = known->second->contains(end.inode);
  }
  return unread;
}

InFlightScan find_in_flight(const ProcDirectory& root, const ChannelList& channels,
                            const std::vector<UnixSocket>& unix_sockets) {
  InFlightSearch search(root, unix_sockets);
  for (const auto& end : channels) search.take(end);
  auto& scan = search.scan();
  std::sort(scan.queued.begin(), scan.queued.end(),
            [](const InFlight& a, const InFlight& b) { return a.pid != b.pid ? a.pid < b.pid : a.fd < b.fd; });
  return std::move(scan);
}

}  // namespace vacate
