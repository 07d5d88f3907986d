// SPDX-License-Identifier: Apache-2.0
// Answers of NETLINK_SOCK_DIAG: no more sockets than the bytes have room for, none without a number, an end for every
// walk over the parts.
#include <linux/netlink.h>
#include <linux/unix_diag.h>

#include "fuzz.h"
#include "os/sock_diag.h"

using namespace vacate;
using namespace vacate::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto datagram = as_text(data, size);
  const auto part = parse_unix_diag(datagram);
  require(part.sockets.size() * (sizeof(nlmsghdr) + sizeof(unix_diag_msg)) <= datagram.size(),
          "sock_diag: a socket is a message");
  for (const auto& socket : part.sockets) require(socket.inode != 0, "sock_diag: a socket has a number");
  require(part.error >= 0, "sock_diag: errno is positive");
  require(!part.done || part.error == 0, "sock_diag: the end is no error");
  return 0;
}
