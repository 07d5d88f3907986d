// SPDX-License-Identifier: Apache-2.0
// Against a socket of the test's own, in mounts of its own: what the datagram is, and journals that are none.
#include "os/journal_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "os/test_mounts.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr const char* kFolder = "/run/systemd/journal";

/// /run of the test's own, with the journal's folder in it.
bool lay_out_socket() {
  return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") == 0 && mkdir("/run/systemd", 0755) == 0 &&
         mkdir(kFolder, 0755) == 0;
}

UniqueFd listen_there() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, kJournalSocket);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) abort();
  return socket;
}

/// The next datagram: its bytes, or those of the file that came with it.
std::string receive(const UniqueFd& socket) {
  std::array<char, 65536> bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return "nothing came";
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return {bytes.data(), static_cast<std::size_t>(count)};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  const UniqueFd file(descriptor);
  EXPECT_EQ(fcntl(descriptor, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  struct stat info {};
  EXPECT_EQ(fstat(descriptor, &info), 0);
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  EXPECT_EQ(pread(descriptor, text.data(), text.size(), 0), info.st_size);
  return text;
}

TEST(EncodeJournal, TakesAnyBytesForAValue) {
  EXPECT_EQ(encode_journal({{"MESSAGE", "done"}, {"A", "x=y"}}), "MESSAGE=done\nA=x=y\n");
  EXPECT_EQ(encode_journal({{"A", "b\nPRIORITY=0"}}), std::string("A\n\x0c\0\0\0\0\0\0\0b\nPRIORITY=0\n", 23));
  EXPECT_EQ(encode_journal({{"A", std::string(258, '\n')}}).substr(0, 10), std::string("A\n\x02\x01\0\0\0\0\0\0", 10));
}

TEST(JournalSocket, AnEntryArrivesWhole) {
  testing::in_mount_namespace(lay_out_socket, [] {
    const auto listener = listen_there();
    auto journal = JournalSocket::connect();
    ASSERT_TRUE(journal) << journal.error().message;
    EXPECT_TRUE(journal->send({{"MESSAGE", "a\nb"}}, Deadline::after(1s)));
    EXPECT_EQ(receive(listener), std::string("MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\n", 20));
  });
}

TEST(JournalSocket, WhatIsTooLargeForADatagramGoesAsASealedFile) {
  testing::in_mount_namespace(lay_out_socket, [] {
    const auto listener = listen_there();
    auto journal = JournalSocket::connect();
    ASSERT_TRUE(journal);
    const std::string large(4U << 20U, 'x');
    EXPECT_TRUE(journal->send({{"MESSAGE", large}}, Deadline::after(1s)));
    EXPECT_EQ(receive(listener), "MESSAGE=" + large + "\n");
  });
}

TEST(JournalSocket, OneThatTakesNothingHoldsNobodyUp) {
  testing::in_mount_namespace(lay_out_socket, [] {
    const auto listener = listen_there();
    auto journal = JournalSocket::connect();
    ASSERT_TRUE(journal);
    Result<void> sent;
    for (int i = 0; i < 100'000 && sent; ++i) sent = journal->send({{"MESSAGE", "x"}}, Deadline::after(20ms));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, ErrorCode::timed_out);
    EXPECT_EQ(receive(listener), "MESSAGE=x\n");
    EXPECT_TRUE(journal->send({{"MESSAGE", "y"}}, Deadline::after(1s))) << "it takes again";
  });
}

TEST(JournalSocket, OneThatEndedIsGone) {
  testing::in_mount_namespace(lay_out_socket, [] {
    EXPECT_EQ(JournalSocket::connect().error().code, ErrorCode::gone);
    auto listener = listen_there();
    auto journal = JournalSocket::connect();
    ASSERT_TRUE(journal);
    listener.reset();
    EXPECT_FALSE(journal->send({{"MESSAGE", "x"}}, Deadline::after(1s)));
    EXPECT_EQ(JournalSocket::connect().error().code, ErrorCode::gone);
  });
}

TEST(JournalSocket, IsRootsOrNone) {
  testing::in_mount_namespace(lay_out_socket, [] {
    const auto listener = listen_there();
    ASSERT_EQ(chown(kJournalSocket, 65534, 65534), 0);
    EXPECT_EQ(JournalSocket::connect().error().code, ErrorCode::refused);
    ASSERT_EQ(chown(kJournalSocket, 0, 0), 0);
    ASSERT_EQ(chmod(kFolder, 0777), 0);
    EXPECT_EQ(JournalSocket::connect().error().code, ErrorCode::refused);
    ASSERT_EQ(chmod(kFolder, 0755), 0);
    ASSERT_EQ(rename(kJournalSocket, "/run/elsewhere"), 0);
    ASSERT_EQ(symlink("/run/elsewhere", kJournalSocket), 0);
    const auto journal = JournalSocket::connect();
    EXPECT_EQ(journal.error().code, ErrorCode::refused);
    EXPECT_THAT(journal.error().message, HasSubstr("no socket of root's"));
  });
}

}  // namespace
}  // namespace vacate
