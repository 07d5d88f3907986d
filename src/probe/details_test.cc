// SPDX-License-Identifier: Apache-2.0
#include "probe/details.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "os/host.h"
#include "os/process_ref.h"

namespace vacate {
namespace {

TEST(ParseFrozen, LooksForTheWholeLine) {
  EXPECT_TRUE(parse_frozen("populated 1\nfrozen 1\n"));
  EXPECT_FALSE(parse_frozen("populated 1\nfrozen 0\n"));
  EXPECT_FALSE(parse_frozen("xfrozen 1\nfrozen 11"));
  EXPECT_FALSE(parse_frozen(""));
}

TEST(ParseNamedParent, TakesTheOptionOnly) {
  EXPECT_EQ(parse_named_parent({"python3", "compile_worker", "--workers=8", "--parent=4711"}), 4711);
  EXPECT_FALSE(parse_named_parent({}));
  EXPECT_FALSE(parse_named_parent({"--parent", "4711"}));
  for (const char* word :
       {"--parent=", "--parent=0", "--parent=-1", "--parent=x", "--parent=99999999999", "x--parent=5"})
    EXPECT_FALSE(parse_named_parent({word})) << word;
}

Process walked(const ProcDirectory& root, pid_t pid) {
  Process process;
  const auto stat = root.open(pid)->stat();
  process.key = {pid, stat->start_ticks, 0, own_pid_namespace()};
  process.state = stat->state;
  process.threads = stat->threads;
  return process;
}

class Details : public ::testing::Test {
 protected:
  void SetUp() override {
    child_ = fork();
    if (child_ == 0) {
      execl("/bin/sh", "sh", "-c", "kill -STOP $$", "--parent=1", nullptr);
      _exit(1);
    }
  }
  void TearDown() override {
    if (const auto ref = ProcessRef::open(child_)) (void)ref->send_signal(SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  pid_t child_ = -1;
  ProcDirectory root_ = *ProcDirectory::open_root();
};

TEST_F(Details, OfARealProcess) {
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, getpid());
  ASSERT_TRUE(reader.read(process));
  EXPECT_TRUE(process.detailed);
  EXPECT_EQ(process.uid, Reading<uid_t>(geteuid()));
  EXPECT_FALSE(process.user.empty());
  EXPECT_TRUE(process.exe.known());
  EXPECT_EQ(process.pid_namespace, own_pid_namespace());
  ASSERT_FALSE(process.ns_pids.empty());
  EXPECT_EQ(process.condition, Condition::running);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  EXPECT_LE(process.started, static_cast<double>(now.tv_sec) + 1);
  EXPECT_GT(process.started, reader.boot_time() - 1);
}

TEST_F(Details, AnotherBearerOfThePidIsNotIt) {
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, getpid());
  ++process.key.start_ticks;
  EXPECT_FALSE(reader.read(process));
}

TEST_F(Details, StoppedIsSeen) {
  const auto ref = ProcessRef::open(child_);
  ASSERT_TRUE(ref && ref->send_signal(SIGSTOP));
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED), 0);
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, child_);
  ASSERT_TRUE(reader.read(process));
  EXPECT_EQ(process.condition, Condition::stopped);
}

TEST_F(Details, CommandLinesAreReadAndTheParentInThemResolved) {
  // exec may not have happened yet: its comm changes then.
  for (int i = 0; i < 500 && root_.open(child_)->stat()->comm != "sh"; ++i) usleep(10000);
  auto lines = CommandLineScan({child_, 1 << 22}).finish();
  ASSERT_TRUE(lines[child_].known());
  EXPECT_THAT(*lines[child_], ::testing::ElementsAre("sh", "-c", "kill -STOP $$", "--parent=1"));
  EXPECT_FALSE(lines[1 << 22].known());
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, child_);
  ASSERT_TRUE(reader.read(process));
  process.argv = lines[child_];
  std::vector<Process> processes = {walked(root_, 1), process};
  resolve_named_parents(root_, processes);
  EXPECT_EQ(processes[1].named_parent, 1);
  EXPECT_TRUE(processes[1].named_parent_alive);
  // A bearer of the number that is younger than the child is not its parent.
  processes[0].key.start_ticks = process.key.start_ticks + 1;
  resolve_named_parents(root_, processes);
  EXPECT_FALSE(processes[1].named_parent_alive);
}

}  // namespace
}  // namespace vacate
