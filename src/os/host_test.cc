// SPDX-License-Identifier: Apache-2.0
// The caller, users, shells and sockets of the machine that runs the tests.
#include "os/host.h"

#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "os/sock_diag.h"
#include "os/users.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;

TEST(ReadCaller, KnowsItselfAndItsAncestors) {
  const auto root = ProcDirectory::open_root();
  ASSERT_TRUE(root);
  const auto read = read_caller(*root);
  ASSERT_TRUE(read);
  const auto& caller = *read;
  EXPECT_EQ(caller.self.pid, getpid());
  EXPECT_GT(caller.self.start_ticks, 0U);
  ASSERT_FALSE(caller.ancestors.empty());
  EXPECT_EQ(caller.ancestors.front(), getppid());
  EXPECT_EQ(caller.uid, geteuid());
}

TEST(Capabilities, AreBits) {
  EXPECT_TRUE(has_capability(1U << 5U, 5));
  EXPECT_FALSE(has_capability(1U << 5U, 4));
  EXPECT_FALSE(has_capability(~0ULL, 64));
}

TEST(ParseShells, TakesPathsOnly) {
  EXPECT_THAT(parse_shells("# shells\n/bin/sh\n\n /bin/bash # best\nrubbish\n"), ElementsAre("/bin/sh", "/bin/bash"));
}

TEST(Users, NameOrNumber) {
  const Users users(parse_passwd(
      "root:x:0:0::/:/bin/sh\nbroken\nx:y\nneg:x:-1:0::\nbig:x:4294967295:0::\n#c:x:5:5::\nalice:x:1001:1001::/"
      ":\nalias:x:0:0::\n"));
  EXPECT_EQ(users.name_of(0), "root");
  EXPECT_EQ(users.name_of(1001), "alice");
  EXPECT_EQ(users.name_of(5), "5");
  EXPECT_EQ(users.find("alice"), uid_t{1001});
  EXPECT_FALSE(users.find("neg"));
}

TEST(Users, OfRunningServicesAreFoundByTheLinksOfTheManager) {
  const std::string folder = ::testing::TempDir() + "dynamic-uid-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const auto link = [&](const char* name, const char* target) {
    return symlink(target, (folder + "/direct:" + name).c_str()) == 0;
  };
  ASSERT_TRUE(link("llm", "61184") && link("61184", "llm"));
  ASSERT_TRUE(link("low", "1001") && link("1001", "low"));       // nobody's to give away
  ASSERT_TRUE(link("other", "61185") && link("61185", "else"));  // the two do not agree
  ASSERT_TRUE(link("odd", "x"));
  EXPECT_EQ(find_dynamic_user("llm", folder), uid_t{61184});
  for (const auto* name : {"low", "other", "odd", "61184", "none", "", "../llm"})
    EXPECT_FALSE(find_dynamic_user(name, folder)) << name;
  for (const auto* name : {"llm", "61184", "low", "1001", "other", "61185", "odd"})
    (void)unlink((folder + "/direct:" + name).c_str());
  EXPECT_EQ(rmdir(folder.c_str()), 0);
}

TEST(UnixSockets, ShowBothEndsOfAPairAndAClosedOne) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  UniqueFd first(pair[0]);
  UniqueFd second(pair[1]);
  const auto inode = read_identity(first.get())->inode;
  const auto peer = read_identity(second.get())->inode;
  const auto find = [&]() -> std::optional<UnixSocket> {
    const auto sockets = read_unix_sockets(Deadline::after(std::chrono::seconds(5)));
    if (!sockets) return std::nullopt;
    const auto at =
        std::find_if(sockets->begin(), sockets->end(), [&](const UnixSocket& socket) { return socket.inode == inode; });
    return at == sockets->end() ? std::nullopt : std::optional(*at);
  };
  const auto before = find();
  if (!before) GTEST_SKIP() << "this kernel has no unix_diag";
  EXPECT_EQ(*before, (UnixSocket{inode, peer, true, false, false, 0}));
  ASSERT_EQ(write(second.get(), "abc", 3), 3);
  EXPECT_EQ(find()->queued, 3U);
  second.reset();
  EXPECT_EQ(find()->peer, 0U);
}

std::string netlink_message(std::uint16_t type, const std::string& payload) {
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload;
}

TEST(ParseUnixDiag, EveryCutIsHarmless) {
  unix_diag_msg socket{};
  socket.udiag_type = SOCK_STREAM;
  socket.udiag_ino = 7;
  std::string payload(reinterpret_cast<const char*>(&socket), sizeof socket);
  nlattr attribute{8, UNIX_DIAG_PEER};
  const std::uint32_t peer = 9;
  payload.append(reinterpret_cast<const char*>(&attribute), sizeof attribute)
      .append(reinterpret_cast<const char*>(&peer), sizeof peer);
  const std::string whole = netlink_message(SOCK_DIAG_BY_FAMILY, payload);
  EXPECT_THAT(parse_unix_diag(whole).sockets, ElementsAre(UnixSocket{7, 9, true, false, false, 0}));
  for (std::size_t length = 1; length < whole.size(); ++length)
    EXPECT_NE(parse_unix_diag(std::string_view(whole).substr(0, length)).error, 0) << length;
  EXPECT_TRUE(parse_unix_diag(netlink_message(NLMSG_DONE, "")).done);
  const std::int32_t error = -ENOENT;
  EXPECT_EQ(
      parse_unix_diag(netlink_message(NLMSG_ERROR, std::string(reinterpret_cast<const char*>(&error), sizeof error)))
          .error,
      ENOENT);
  auto overlong = whole;
  overlong[sizeof(nlmsghdr) + sizeof socket] = '\x7f';  // an attribute longer than its message
  EXPECT_THAT(parse_unix_diag(overlong).sockets, ElementsAre(UnixSocket{7, 0, true, false, false, 0}));
}

}  // namespace
}  // namespace vacate
