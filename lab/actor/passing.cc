// SPDX-License-Identifier: Apache-2.0
// See passing.h. The asker listens under an abstract name made of its slot: names of that kind belong to the machine's
// network namespace and leave nothing behind.
#include "lab/actor/passing.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

namespace lab {
namespace {

using vacate::Error;
using vacate::ErrorCode;
using vacate::Result;
using vacate::system_error;
using vacate::UniqueFd;

constexpr time_t kExportSeconds = 20;

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Address address_of(std::uint32_t slot) {
  const std::string text = "vacate-lab/import/" + std::to_string(slot);
  Address address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());  // the first byte stays 0: abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

/// Text with a descriptor, or without one where `fd` is -1.
Result<void> send_message(int socket, std::string_view text, int fd, const Address* to) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (to != nullptr) {
    message.msg_name = const_cast<sockaddr_un*>(&to->name);
    message.msg_namelen = to->size;
  }
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return system_error("sending a descriptor");
  return {};
}

Result<UniqueFd> receive_descriptor(int socket) {
  std::array<char, 512> text{};
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (size < 0) return system_error("waiting for an export");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    return Error{ErrorCode::io, std::string(text.data(), static_cast<std::size_t>(size))};
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Result<void> send_descriptor(int socket, int fd) { return send_message(socket, "+", fd, nullptr); }

Result<UniqueFd> ask_for_export(const Board& board, std::uint32_t slot, std::uint32_t number, std::uint32_t exporter) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address own = address_of(slot);
  if (!socket || bind(socket.get(), reinterpret_cast<const sockaddr*>(&own.name), own.size) != 0)
    return system_error("socket of an import");
  const timeval limit{kExportSeconds, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  Slot& mine = board.slot(slot);
  mine.import_hold.store(number);
  mine.exporter.store(exporter);
  mine.asks.store(1);
  board.nudge(exporter);
  return receive_descriptor(socket.get());
}

void serve_exports(const Board& board, std::uint32_t slot, const MakeExport& make) {
  for (std::uint32_t i = 0; i < board.count(); ++i) {
    Slot& asker = board.slot(i);
    if (asker.asks.load() == 0 || asker.exporter.load() != slot) continue;
    asker.asks.store(0);
    ActorPlan plan;
    Unpacker(board.plan(i))(plan);
    const auto file = make(plan.holds.at(asker.import_hold.load()));
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Address to = address_of(i);
    // Nobody is told of a failure to send: who asked waits no longer than its limit.
    (void)send_message(socket.get(), file ? "+" : file.error().message, file ? file->get() : -1, &to);
  }
}

}  // namespace lab
