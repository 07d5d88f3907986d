// SPDX-License-Identifier: Apache-2.0
// Who is in which process list, with how much, and under which number: facts.md 1.6, 1.7 and lab.md 2 [driver].
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include <gmock/gmock.h>

#include "child.h"
#include "driver_under_test.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using vacate::mebibytes;
using vacate::UniqueFd;

class Lists : public DriverUnderTest {};

TEST_F(Lists, EachKindInItsOwn) {
  start();
  const UniqueFd ctl = open_ctl();
  for (const ListKind kind : {ListKind::compute, ListKind::graphics, ListKind::mps}) {
    EXPECT_THAT(listed(ctl.get(), 0, kind), IsEmpty());
    ASSERT_EQ(allocate(ctl.get(), 0, 10, kind), 0);
    EXPECT_THAT(listed_pids(ctl.get(), 0, kind), ElementsAre(getpid()));
    EXPECT_THAT(listed(ctl.get(), 1, kind), IsEmpty());
  }
  EXPECT_EQ(used_mib(0), kBaseline + 30);
}

TEST_F(Lists, MemoryOfNobodyIsUsedButNotCharged) {
  start();
  const UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 60, ListKind::none), 0);
  for (const ListKind kind : {ListKind::compute, ListKind::graphics, ListKind::mps}) {
    EXPECT_THAT(listed(ctl.get(), 0, kind), IsEmpty());
  }
  ASSERT_EQ(allocate(ctl.get(), 0, 5), 0);
  const auto rows = listed(ctl.get(), 0);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].bytes, mebibytes(5).count);
  EXPECT_EQ(used_mib(0), kBaseline + 65);
}

TEST_F(Lists, OneRowAProcessWithTheSumOfItsClients) {
  start();
  const UniqueFd first = make_client(0, 10);
  const UniqueFd second = make_client(0, 20);
  const auto rows = listed(first.get(), 0);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].bytes, mebibytes(30).count);
  EXPECT_THAT(state().clients, SizeIs(2));
}

TEST_F(Lists, ContextWithoutMemoryIsListedWithZero) {
  start();
  const UniqueFd ctl = open_ctl();
  ASSERT_EQ(allocate(ctl.get(), 0, 0), 0);
  const auto rows = listed(ctl.get(), 0);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].bytes, 0U);
}

TEST_F(Lists, OpenFilesAloneAreInNoList) {
  start();
  const UniqueFd ctl = open_ctl();
  const UniqueFd gpu = open_node("nvidia0");
  ASSERT_EQ(register_file(gpu.get(), ctl.get()), 0);
  EXPECT_THAT(listed(ctl.get(), 0), IsEmpty());
  EXPECT_THAT(state().clients, IsEmpty());
}

TEST_F(Lists, MemoryMayBeNotAvailableOrZero) {
  for (const auto& [mode, bytes] : {std::pair{ProcessMemory::na, ~std::uint64_t{0}}, {ProcessMemory::zero, 0}}) {
    DriverConfig config = two_gpus();
    config.process_memory = mode;
    start(config);
    const UniqueFd ctl = make_client(0, 10);
    const auto rows = listed(ctl.get(), 0);
    ASSERT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows[0].bytes, bytes);
    EXPECT_EQ(used_mib(0), kBaseline + 10);
  }
}

TEST_F(Lists, GarbageComesAfterTheClients) {
  DriverConfig config = two_gpus();
  config.garbage_pids = {0, 1, 4194305, 4294967295};
  start(config);
  const UniqueFd ctl = make_client(0, 10);
  EXPECT_THAT(listed_pids(ctl.get(), 0), ElementsAre(getpid(), 0U, 1U, 4194305U, 4294967295U));
}

TEST_F(Lists, AreCutOffAt950) {
  DriverConfig config = two_gpus();
  for (std::uint32_t pid = 1; pid <= 1000; ++pid) config.garbage_pids.push_back(pid);
  start(config);
  const UniqueFd ctl = open_ctl();
  EXPECT_THAT(listed(ctl.get(), 0), SizeIs(950));
}

std::string text_of(const std::vector<std::uint32_t>& pids) {
  std::ostringstream text;
  for (const std::uint32_t pid : pids) text << pid << ' ';
  return text.str();
}

void say_text(int say, const std::string& text) { static_cast<void>(!write(say, text.data(), text.size())); }

/// Runs `inside` as pid 1 of a new pid namespace, forked by the calling process, and waits for it. For children of
/// tests.
template <class Body>
pid_t in_new_pid_namespace(Body inside) {
  if (unshare(CLONE_NEWPID) != 0) _exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    inside();
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  return pid;
}

TEST_F(Lists, CallerSeesItsOwnNumbersAndNobodyElse) {
  start();
  const UniqueFd outside = make_client(0, 10);
  Child child([&](int say) {
    in_new_pid_namespace([&] {
      const UniqueFd inside = make_client(0, 20);
      say_text(say, text_of(listed_pids(inside.get(), 0)));
    });
  });
  EXPECT_EQ(child.said(), "1 ") << "not the client outside, which is not visible there";
}

TEST_F(Lists, OutsideSeesTheNumbersOutside) {
  start();
  const UniqueFd outside = make_client(0, 10);
  const UniqueFd inherited = open_ctl();
  Child child([&](int say) {
    const pid_t inner = in_new_pid_namespace([&] { static_cast<void>(allocate(inherited.get(), 0, 20)); });
    say_text(say, std::to_string(inner));
  });
  const auto inner = static_cast<std::uint32_t>(std::stoul(child.said()));
  EXPECT_THAT(listed_pids(outside.get(), 0), UnorderedElementsAre(getpid(), inner));
  const auto clients = state().clients;
  ASSERT_THAT(clients, SizeIs(2));
  EXPECT_THAT(clients[1].ns_pids, ElementsAre(inner, 1));
}

TEST_F(Lists, NumberOfADeadAndReapedProcessIsStillTranslated) {
  start();
  Child child([&](int say) {
    in_new_pid_namespace([&] {
      const UniqueFd ctl = open_ctl();
      const pid_t second = fork();  // pid 2 in there
      if (second == 0) _exit(allocate(ctl.get(), 0, 20));
      waitpid(second, nullptr, 0);
      say_text(say, text_of(listed_pids(ctl.get(), 0)));
    });
  });
  EXPECT_EQ(child.said(), "2 ") << "facts.md 1.7: pid_vnr of a referenced struct pid";
}

/// The lab's machine is a pid namespace below the server's; `global` numbers are the machine's, whoever asks.
TEST_F(Lists, GlobalNumbersAreTheMachines) {
  DriverConfig config = two_gpus();
  config.pids = PidPolicy::global;
  start(config);
  Child child([&](int say) {
    in_new_pid_namespace([&] {           // the machine
      const UniqueFd host = open_ctl();  // charged to pid 1 of the machine
      if (allocate(host.get(), 0, 10) != 0) _exit(1);
      const pid_t box = in_new_pid_namespace([&] {  // a container in it
        const UniqueFd ctl = make_client(0, 20);
        say_text(say, text_of(listed_pids(ctl.get(), 0)));
      });
      say_text(say, "| " + std::to_string(box));
    });
  });
  EXPECT_EQ(child.said(), "1 2 | 2");
}

TEST_F(Lists, LostGpuCannotBeOpenedAndKeepsItsClients) {
  start();
  const UniqueFd ctl = make_client(1, 10);
  const UniqueFd gpu = open_node("nvidia1");
  ASSERT_TRUE(gpu);
  ASSERT_TRUE(set_gpu_state(directory(), 1, GpuState::lost));
  EXPECT_FALSE(open_node("nvidia1"));
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(allocate(ctl.get(), 1, 1), EINVAL);
  GpuQuery query{};
  query.index = 1;
  ASSERT_EQ(ioctl(ctl.get(), kGpu, &query), 0);
  EXPECT_EQ(query.state, static_cast<std::uint32_t>(GpuState::lost));
  EXPECT_THAT(state().clients, SizeIs(1));
  EXPECT_TRUE(open_node("nvidia0"));
}

TEST_F(Lists, ConfigurationsTheDriverCannotHonourAreRefusedByName) {
  DriverConfig config = two_gpus();
  config.gpus[1].minor = 0;
  auto refused = DriverServer::start(config, directory());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("gpu 1: minor 0 is taken"));
}

TEST_F(Lists, NodesAreNamedByMinor) {
  DriverConfig config = two_gpus();
  config.gpus[0].minor = 5;
  config.gpus[1].minor = 0;
  start(config);
  EXPECT_TRUE(open_node("nvidia5"));
  EXPECT_TRUE(open_node("nvidia0"));
  EXPECT_FALSE(open_node("nvidia1"));
  ASSERT_TRUE(set_gpu_state(directory(), 1, GpuState::lost));
  EXPECT_FALSE(open_node("nvidia0")) << "GPU 1 has minor 0";
}

}  // namespace
}  // namespace lab
