// SPDX-License-Identifier: Apache-2.0
#include "probe/details.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

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
  EXPECT_EQ(process.login_uid, parse_login_uid(root_.open(getpid())->read("loginuid").value_or("")));
  EXPECT_EQ(process.login_user.empty(), !process.login_uid);
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

/// A child that runs `work` and never returns from it; ended with the test.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    work();
    for (;;) pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    if (const auto ref = ProcessRef::open(pid_)) (void)ref->send_signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

/// Waits until /proc says `state` of `pid`.
bool reaches(const ProcDirectory& root, pid_t pid, char state) {
  for (int i = 0; i < 1000; ++i) {
    const auto directory = root.open(pid);
    const auto stat = directory ? directory->stat() : Result<ProcStat>(directory.error());
    if (stat && stat->state == state) return true;
    usleep(5000);
  }
  return false;
}

TEST_F(Details, TracedIsSeen) {
  const Child traced([] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    (void)raise(SIGUSR1);
  });
  int status = 0;
  ASSERT_EQ(waitpid(traced.pid(), &status, 0), traced.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, traced.pid());
  ASSERT_TRUE(reader.read(process));
  EXPECT_EQ(process.condition, Condition::traced);
}

TEST_F(Details, AParentInVforkIsNotStuck) {
  const Child parent([] {
    // vfork(2), which not every architecture has a number for. The child shares the stack and does nothing with it.
    if (syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, nullptr, nullptr, 0) == 0) {
      for (;;) pause();
    }
  });
  // Making the child can wait in D as well, elsewhere.
  for (int i = 0; i < 1000 && root_.open(parent.pid())->read("wchan").value_or("") != "kernel_clone"; ++i) usleep(5000);
  ASSERT_TRUE(reaches(root_, parent.pid(), 'D'));
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, parent.pid());
  ASSERT_TRUE(reader.read(process));
  EXPECT_EQ(process.state, 'D');
  EXPECT_EQ(process.condition, Condition::running);
  EXPECT_FALSE(waits_in_kernel(process));
  // What it vforked holds it up: ended with it.
  const auto all = list_numbers(root_, *std::make_unique<DirectoryReader>());
  ASSERT_TRUE(all);
  for (const pid_t pid : *all) {
    const auto directory = root_.open(pid);
    const auto stat = directory ? directory->stat() : Result<ProcStat>(directory.error());
    if (!stat || stat->ppid != parent.pid()) continue;
    if (const auto ref = ProcessRef::open(pid)) (void)ref->send_signal(SIGKILL);
  }
}

TEST_F(Details, AZombieLeaderIsSeenThroughItsThread) {
  const Child leader([] {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);
  });
  ASSERT_TRUE(reaches(root_, leader.pid(), 'Z'));
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, leader.pid());
  ASSERT_TRUE(reader.read(process));
  EXPECT_EQ(process.condition, Condition::zombie_leader);
  EXPECT_FALSE(is_gone(process));
  EXPECT_TRUE(process.exe.known());
}

/// A control group of its own below `parent`, removed with it.
class Cgroup {
 public:
  explicit Cgroup(const std::string& parent) : path_(parent + "/vacate-test-" + std::to_string(getpid())) {
    made_ = mkdir(path_.c_str(), 0755) == 0;
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup() {
    for (int i = 0; made_ && i < 200 && rmdir(path_.c_str()) != 0; ++i) usleep(10000);
  }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] bool write(const char* file, const std::string& text) const {
    const UniqueFd fd(open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  [[nodiscard]] bool reads(const char* file, std::string_view text) const {
    for (int i = 0; i < 500; ++i) {
      const auto content = read_file((path_ + "/" + file).c_str(), 4096);
      if (content && content->find(text) != std::string::npos) return true;
      usleep(10000);
    }
    return false;
  }

 private:
  std::string path_;
  bool made_ = false;
};

TEST_F(Details, FrozenByVersionTwoIsSeen) {
  const auto mount = parse_cgroup2_mount(read_file("/proc/self/mountinfo").value_or(""));
  if (mount.empty()) GTEST_SKIP() << "no control groups of version 2 here";
  const Cgroup group(mount);
  if (!group.made()) GTEST_SKIP() << "no control group can be made here";
  Child child([] {});
  ASSERT_TRUE(group.write("cgroup.procs", std::to_string(child.pid())));
  ASSERT_TRUE(group.write("cgroup.freeze", "1"));
  ASSERT_TRUE(group.reads("cgroup.events", "frozen 1"));
  DetailReader reader(root_, Users::read());
  auto process = walked(root_, child.pid());
  ASSERT_TRUE(reader.read(process));
  EXPECT_EQ(process.condition, Condition::frozen);
  child.end();
}

TEST_F(Details, FrozenByVersionOneIsSeen) {
  static constexpr const char* kFreezer = "/sys/fs/cgroup/freezer";
  if (access((std::string(kFreezer) + "/cgroup.procs").c_str(), W_OK) != 0)
    GTEST_SKIP() << "no freezer of version 1 here";
  const Cgroup group(kFreezer);
  if (!group.made()) GTEST_SKIP() << "no control group can be made here";
  // The kernel freezes a sleep where it is, and wakes a pause into its refrigerator.
  Child sleeping([] { sleep(3600); });
  Child pausing([] {});
  std::vector<Condition> seen;
  const auto look = [&](const Child& child) {
    if (!reaches(root_, child.pid(), 'D')) return;
    DetailReader reader(root_, Users::read());
    auto process = walked(root_, child.pid());
    if (reader.read(process)) seen.push_back(process.condition);
  };
  for (const auto* child : {&sleeping, &pausing}) {
    EXPECT_TRUE(reaches(root_, child->pid(), 'S'));
    EXPECT_TRUE(group.write("cgroup.procs", std::to_string(child->pid())));
  }
  if (group.write("freezer.state", "FROZEN") && group.reads("freezer.state", "FROZEN")) {
    look(sleeping);
    look(pausing);
  }
  EXPECT_TRUE(group.write("freezer.state", "THAWED"));  // a KILL stays pending until then
  EXPECT_THAT(seen, ::testing::ElementsAre(Condition::frozen, Condition::frozen));
  sleeping.end();
  pausing.end();
}

TEST(ApplyLook, TellsWhereItIsStuckAndUndoesAMoment) {
  Process process;
  process.state = 'D';
  process.condition = Condition::stuck;
  process.wchan = "request_wait_answer";
  apply_look({'D', {{"request_wait_answer", "fuse"}, {"do_syscall_64", ""}}}, process);
  EXPECT_EQ(process.condition, Condition::stuck);
  EXPECT_EQ(process.kernel_frame, "request_wait_answer");
  EXPECT_EQ(process.kernel_module, "fuse");
  EXPECT_EQ(process.stuck_in, StuckIn::fuse);
  apply_look({'D', {}}, process);
  EXPECT_EQ(process.kernel_frame, "request_wait_answer");
  apply_look({'S', {}}, process);
  EXPECT_EQ(process.condition, Condition::running);
  EXPECT_EQ(process.wchan, "");
}

}  // namespace
}  // namespace vacate
