// SPDX-License-Identifier: Apache-2.0
// UNIX sockets of vacate's own network namespace and who is at their other end, from NETLINK_SOCK_DIAG. A kernel
// without it (unsupported) leaves sockets out of every proof.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"

namespace vacate {

struct UnixSocket {
  std::uint64_t inode = 0;
  std::uint64_t peer = 0;  ///< inode of the other end; 0: none, or it has been closed
  bool stream = false;     ///< SOCK_STREAM or SOCK_SEQPACKET
  bool listening = false;
  bool named = false;        ///< bound to a path or an abstract name
  std::uint32_t queued = 0;  ///< bytes to be received; of a listener the connections to be accepted

  bool operator==(const UnixSocket&) const = default;
};

/// Sorted by inode.
[[nodiscard]] Result<std::vector<UnixSocket>> read_unix_sockets(Deadline deadline);

/// One datagram of the answer, added to `sockets`. Pure. False: it was the last, or malformed.
struct DiagPart {
  std::vector<UnixSocket> sockets;
  bool done = false;
  int error = 0;  ///< errno of the kernel, EBADMSG for what cannot be parsed
};
[[nodiscard]] DiagPart parse_unix_diag(std::string_view datagram);

}  // namespace vacate
