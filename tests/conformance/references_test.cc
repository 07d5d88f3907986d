// SPDX-License-Identifier: Apache-2.0
// What keeps a client, and with it its memory, alive: facts.md 2.2.1-2.2.3, 3.1, and what does not.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>

#include "child.h"
#include "driver_under_test.h"
#include "waiting.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using vacate::UniqueFd;

constexpr std::size_t kPage = 4096;

class References : public DriverUnderTest {
 protected:
  void SetUp() override { start(); }

  /// A client of 100 MiB on GPU 0 that the calling process has a descriptor of.
  UniqueFd client() {
    UniqueFd ctl = make_client(0, 100);
    EXPECT_TRUE(ctl) << std::strerror(errno);
    EXPECT_EQ(used_mib(0), kHeld);
    return ctl;
  }
  [[nodiscard]] bool is_held() const { return used_mib(0) == kHeld; }
  [[nodiscard]] bool gets_free() const { return comes_to_use(0, kBaseline); }

  static constexpr std::uint64_t kHeld = kBaseline + 100;
};

TEST_F(References, CloseOfTheOnlyDescriptorFrees) {
  UniqueFd ctl = client();
  ctl.reset();
  EXPECT_TRUE(gets_free());
  EXPECT_THAT(state().clients, IsEmpty());
}

TEST_F(References, MemoryIsBackWhenTheLastHolderIsSeenDead) {
  for (int round = 0; round < 50; ++round) {
    Child holder([&](int) { static_cast<void>(make_client(0, 100).release()); });
    ASSERT_TRUE(is_held());
    holder.signal(SIGKILL);
    ASSERT_TRUE(holder.ends_within(5000));
    ASSERT_EQ(used_mib(0), kBaseline) << "facts.md 2.3: release() runs before the pidfd is readable";
  }
}

TEST_F(References, DupKeeps) {
  UniqueFd ctl = client();
  UniqueFd copy(dup(ctl.get()));
  ctl.reset();
  EXPECT_TRUE(is_held());
  copy.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, EveryForkedChildKeeps) {
  UniqueFd ctl = client();
  Child first([](int) {});
  Child second([](int) {});
  ctl.reset();
  EXPECT_TRUE(is_held());
  first.end();
  EXPECT_TRUE(is_held()) << "ending a strict subset of the holders frees nothing";
  second.end();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, DeathOfTheOpenerAloneFreesNothing) {
  UniqueFd ctl = open_ctl();
  Child opener([&](int) { static_cast<void>(allocate(ctl.get(), 0, 100)); });
  const pid_t opener_pid = opener.pid();
  opener.end();
  EXPECT_TRUE(is_held());
  EXPECT_THAT(listed_pids(ctl.get(), 0), ElementsAre(opener_pid)) << "charged to the dead pid";
  const auto clients = state().clients;
  ASSERT_EQ(clients.size(), 1U);
  EXPECT_EQ(clients[0].opener, opener_pid);
  ctl.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, ChargedToTheProcessNotTheThread) {
  UniqueFd ctl = open_ctl();
  Child opener([&](int) { std::thread([&] { static_cast<void>(allocate(ctl.get(), 0, 100)); }).join(); });
  EXPECT_THAT(listed_pids(ctl.get(), 0), ElementsAre(opener.pid()));
}

TEST_F(References, DescriptorInFlightKeeps) {
  std::array<int, 2> sockets{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  UniqueFd sender(sockets[0]);
  UniqueFd receiver(sockets[1]);
  UniqueFd ctl = client();
  char byte = 'x';
  iovec data = {&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int passed = ctl.get();
  std::memcpy(CMSG_DATA(rights), &passed, sizeof passed);
  ASSERT_EQ(sendmsg(sender.get(), &message, 0), 1);
  ctl.reset();
  EXPECT_TRUE(is_held());
  receiver.reset();
  sender.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, ExecKeepsWhatIsNotCloseOnExec) {
  UniqueFd ctl = client();
  Child child([&](int) {
    fcntl(ctl.get(), F_SETFD, 0);
    become_another_program();
  });
  ASSERT_TRUE(eventually([&] { return child.status("Name") == "cat"; }));
  ctl.reset();
  EXPECT_TRUE(is_held());
  child.end();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, ExecDropsWhatIsCloseOnExec) {
  UniqueFd ctl = client();
  Child child([](int) { become_another_program(); });
  ASSERT_TRUE(eventually([&] { return child.status("Name") == "cat"; }));
  ctl.reset();
  EXPECT_TRUE(gets_free()) << "the child lives but holds nothing";
}

class Mappings : public References, public ::testing::WithParamInterface<int> {};

TEST_P(Mappings, KeepAfterClose) {
  UniqueFd ctl = client();
  void* mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, GetParam(), ctl.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED) << std::strerror(errno);
  EXPECT_EQ(*static_cast<volatile char*>(mapped), 0);
  *static_cast<volatile char*>(mapped) = 1;
  ctl.reset();
  EXPECT_TRUE(is_held());
  munmap(mapped, kPage);
  EXPECT_TRUE(gets_free());
}

TEST_P(Mappings, OfAForkedChildKeepAlone) {
  UniqueFd ctl = client();
  void* mapped = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, GetParam(), ctl.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED) << std::strerror(errno);
  Child child([&](int) { ctl.reset(); });
  ctl.reset();
  munmap(mapped, kPage);
  EXPECT_TRUE(is_held()) << "facts.md 2.2.3: a child without exec inherits the mapping";
  child.end();
  EXPECT_TRUE(gets_free());
}

INSTANTIATE_TEST_SUITE_P(, Mappings, ::testing::Values(MAP_SHARED, MAP_PRIVATE), [](const auto& about) {
  return std::string(about.param == MAP_SHARED ? "Shared" : "Private");
});

TEST_F(References, PathOnlyDescriptorHoldsNothing) {
  UniqueFd ctl = client();
  const UniqueFd path_only = open_node("nvidiactl", O_PATH | O_CLOEXEC);
  ASSERT_TRUE(path_only);
  ctl.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, TruncatingOpenChangesNothing) {
  const UniqueFd written = open_node("nvidiactl", O_WRONLY | O_TRUNC | O_CLOEXEC);
  ASSERT_TRUE(written) << std::strerror(errno);
  UniqueFd ctl = client();
  void* mapped = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, ctl.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(*static_cast<volatile char*>(mapped), 0) << "still a file that can be mapped";
  munmap(mapped, kPage);
}

TEST_F(References, GpuFileHoldsItsControlFile) {
  UniqueFd ctl = client();
  UniqueFd gpu = open_node("nvidia0");
  ASSERT_EQ(register_file(gpu.get(), ctl.get()), 0);
  ctl.reset();
  EXPECT_TRUE(is_held());
  ASSERT_EQ(state().clients.size(), 1U);
  EXPECT_EQ(state().clients[0].references, 1U);
  gpu.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, GpuFileThatIsNotRegisteredHoldsNothing) {
  UniqueFd ctl = client();
  const UniqueFd gpu = open_node("nvidia0");
  ASSERT_TRUE(gpu);
  ctl.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, GpuFileHasOneControlFile) {
  const UniqueFd first = client();
  const UniqueFd second = open_ctl();
  const UniqueFd gpu = open_node("nvidia0");
  EXPECT_EQ(register_file(gpu.get(), first.get()), 0);
  EXPECT_EQ(register_file(gpu.get(), first.get()), 0);
  EXPECT_EQ(register_file(gpu.get(), second.get()), EINVAL);
  EXPECT_EQ(state().clients.at(0).references, 2U);
}

TEST_F(References, OneSurvivorPinsEveryGpu) {
  UniqueFd ctl = client();
  ASSERT_EQ(allocate(ctl.get(), 1, 200), 0);
  UniqueFd gpu0 = open_node("nvidia0");
  UniqueFd gpu1 = open_node("nvidia1");
  ASSERT_EQ(register_file(gpu0.get(), ctl.get()), 0);
  ASSERT_EQ(register_file(gpu1.get(), ctl.get()), 0);
  Child survivor([&](int) {
    ctl.reset();
    gpu0.reset();
  });
  ctl.reset();
  gpu0.reset();
  gpu1.reset();
  EXPECT_TRUE(is_held()) << "a descriptor of GPU 1 keeps the client's memory on GPU 0";
  EXPECT_EQ(used_mib(1), kBaseline + 200);
  survivor.end();
  EXPECT_TRUE(gets_free());
  EXPECT_TRUE(comes_to_use(1, kBaseline));
}

TEST_F(References, UvmFileKeepsAlone) {
  UniqueFd ctl = client();
  UniqueFd uvm = open_node("nvidia-uvm");
  ASSERT_EQ(register_file(uvm.get(), ctl.get()), 0);
  Child loader([&](int) { ctl.reset(); });
  ctl.reset();
  uvm.reset();
  EXPECT_TRUE(is_held()) << "facts.md 2.2.5";
  loader.end();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, ImportKeepsTheMemoryButNotTheClient) {
  UniqueFd exporter = client();
  UniqueFd importer = open_ctl();
  ASSERT_EQ(register_file(importer.get(), exporter.get()), 0);
  EXPECT_THAT(listed_pids(importer.get(), 0), ElementsAre(getpid()));
  exporter.reset();
  EXPECT_TRUE(eventually([&] { return listed(importer.get(), 0).empty(); })) << "facts.md 2.2.6";
  EXPECT_TRUE(is_held());
  importer.reset();
  EXPECT_TRUE(gets_free());
}

TEST_F(References, TokenOfAnEndedClientIsRefused) {
  UniqueFd ctl = client();
  TokenReply reply{};
  ASSERT_EQ(ioctl(ctl.get(), kToken, &reply), 0);
  ctl.reset();
  ASSERT_TRUE(gets_free());
  const UniqueFd gpu = open_node("nvidia0");
  const RegisterRequest request{reply.token};
  EXPECT_EQ(ioctl(gpu.get(), kRegister, &request), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace lab
