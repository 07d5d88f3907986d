// SPDX-License-Identifier: Apache-2.0
// Datagrams as the kernel writes them, and as it never would.
#include "os/sock_diag.h"

#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string message(std::uint16_t type, const std::string& payload) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = type;
  std::string text = bytes_of(header) + payload;
  text.resize((text.size() + 3) / 4 * 4);
  return text;
}

std::string attribute(std::uint16_t type, const std::string& value) {
  nlattr header{};
  header.nla_len = static_cast<std::uint16_t>(sizeof header + value.size());
  header.nla_type = type;
  std::string text = bytes_of(header) + value;
  text.resize((text.size() + 3) / 4 * 4);
  return text;
}

std::string socket_message(std::uint32_t inode, const std::string& attributes) {
  unix_diag_msg about{};
  about.udiag_type = SOCK_STREAM;
  about.udiag_state = 1;
  about.udiag_ino = inode;
  return message(SOCK_DIAG_BY_FAMILY, bytes_of(about) + attributes);
}

TEST(UnixDiag, SocketsWithPeerAndQueue) {
  const auto part = parse_unix_diag(socket_message(11, attribute(UNIX_DIAG_PEER, bytes_of(std::uint32_t{12})) +
                                                           attribute(UNIX_DIAG_RQLEN, bytes_of(std::uint64_t{5}))) +
                                    socket_message(12, attribute(UNIX_DIAG_NAME, "x")) +
                                    message(NLMSG_DONE, bytes_of(std::int32_t{0})));
  EXPECT_THAT(part.sockets,
              ElementsAre(UnixSocket{11, 12, true, false, false, 5}, UnixSocket{12, 0, true, false, true, 0}));
  EXPECT_TRUE(part.done);
  EXPECT_EQ(part.error, 0);
}

TEST(UnixDiag, AnErrorIsAnErrnoWhateverTheBytes) {
  const auto error_of = [](std::int32_t code) { return parse_unix_diag(message(NLMSG_ERROR, bytes_of(code))).error; };
  EXPECT_EQ(error_of(-ENOENT), ENOENT);
  EXPECT_EQ(error_of(0), EBADMSG);
  EXPECT_EQ(error_of(7), EBADMSG);
  EXPECT_EQ(error_of(-5000), EBADMSG);
  EXPECT_EQ(error_of(std::numeric_limits<std::int32_t>::min()), EBADMSG);  // found by the fuzzer: cannot be negated
  EXPECT_EQ(parse_unix_diag(message(NLMSG_ERROR, "")).error, EBADMSG);
}

TEST(UnixDiag, BrokenDatagramsEndTheWalk) {
  const auto whole = socket_message(11, "");
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto part = parse_unix_diag(std::string_view(whole).substr(0, size));
    EXPECT_THAT(part.sockets, IsEmpty());
    EXPECT_EQ(part.error, EBADMSG) << size;
  }
  EXPECT_THAT(parse_unix_diag(socket_message(0, "")).sockets, IsEmpty());
  EXPECT_EQ(parse_unix_diag("").error, 0);
}

}  // namespace
}  // namespace vacate
