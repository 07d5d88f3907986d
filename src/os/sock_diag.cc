// SPDX-License-Identifier: Apache-2.0
#include "os/sock_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/unique_fd.h"

namespace vacate {
namespace {

constexpr std::uint8_t kTcpListen = 10;       // states are shared with TCP (net/tcp_states.h)
constexpr std::int32_t kLargestErrno = 4095;  // MAX_ERRNO of the kernel

template <class T>
bool take(std::string_view bytes, T* value) noexcept {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(value, bytes.data(), sizeof(T));
  return true;
}

std::size_t aligned(std::size_t length) noexcept { return (length + 3) & ~std::size_t{3}; }

void read_attributes(std::string_view rest, UnixSocket& socket) {
  nlattr attribute{};
  while (take(rest, &attribute) && attribute.nla_len >= sizeof attribute && attribute.nla_len <= rest.size()) {
    const auto value = rest.substr(sizeof attribute, attribute.nla_len - sizeof attribute);
    std::uint32_t number = 0;
    if (attribute.nla_type == UNIX_DIAG_PEER && take(value, &number)) socket.peer = number;
    if (attribute.nla_type == UNIX_DIAG_NAME) socket.named = true;
    if (attribute.nla_type == UNIX_DIAG_RQLEN && take(value, &number)) socket.queued = number;
    rest.remove_prefix(std::min(rest.size(), aligned(attribute.nla_len)));
  }
}

Result<void> send_request(int fd) {
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = AF_UNIX;
  message.request.udiag_states = ~0U;
  message.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN;
  if (send(fd, &message, sizeof message, 0) < 0) return system_error("sock_diag: send");
  return {};
}

}  // namespace

DiagPart parse_unix_diag(std::string_view datagram) {
  DiagPart part;
  nlmsghdr header{};
  while (take(datagram, &header)) {
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) break;
    const auto payload = datagram.substr(sizeof header, header.nlmsg_len - sizeof header);
    datagram.remove_prefix(std::min(datagram.size(), aligned(header.nlmsg_len)));
    if (header.nlmsg_type == NLMSG_DONE) {
      part.done = true;
      return part;
    }
    std::int32_t error = 0;
    if (header.nlmsg_type == NLMSG_ERROR) {
      const bool is_errno = take(payload, &error) && error < 0 && error >= -kLargestErrno;
      part.error = is_errno ? -error : EBADMSG;
      return part;
    }
    unix_diag_msg message{};
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || !take(payload, &message)) continue;
    UnixSocket socket;
    socket.inode = message.udiag_ino;
    socket.stream = message.udiag_type == SOCK_STREAM || message.udiag_type == SOCK_SEQPACKET;
    socket.listening = message.udiag_state == kTcpListen;
    read_attributes(payload.substr(std::min(payload.size(), aligned(sizeof message))), socket);
    if (socket.inode != 0) part.sockets.push_back(socket);
  }
  if (!datagram.empty()) part.error = EBADMSG;
  return part;
}

Result<std::vector<UnixSocket>> read_unix_sockets(Deadline deadline) {
  const UniqueFd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd) return system_error("sock_diag: socket");
  if (auto sent = send_request(fd.get()); !sent) return sent.error();
  std::vector<UnixSocket> sockets;
  std::array<char, 32768> datagram;
  for (;;) {
    const ssize_t n = recv(fd.get(), datagram.data(), datagram.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd wait{fd.get(), POLLIN, 0};
      if (deadline.passed()) return Error{ErrorCode::timed_out, "sock_diag: no answer in time"};
      (void)poll(&wait, 1, deadline.poll_timeout_ms());
      continue;
    }
    if (n < 0) return system_error("sock_diag: recv");
    auto part = parse_unix_diag({datagram.data(), static_cast<std::size_t>(n)});
    sockets.insert(sockets.end(), part.sockets.begin(), part.sockets.end());
    if (part.error != 0) return system_error("sock_diag", part.error);
    if (part.done) break;
  }
  std::sort(sockets.begin(), sockets.end(), [](const UnixSocket& a, const UnixSocket& b) { return a.inode < b.inode; });
  return sockets;
}

}  // namespace vacate
