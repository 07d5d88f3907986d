// SPDX-License-Identifier: Apache-2.0
// Both scans on the same processes, which hold a stand-in for a GPU node in every way a process can: they find the
// same, on a quiet machine, on one where others fork, exec, open, close and start threads all the time, and in a child
// pid namespace.
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <array>
#include <thread>

#include "scan_crowd.h"

namespace vacate {
namespace {

void map_node(int protection, int kind) {
  const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
  (void)!mmap(nullptr, 4096, protection, kind, fd, 0);
  (void)close(fd);
}

void make_ring() {
  std::array<char, 120> parameters{};
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 2, parameters.data()));
  if (ring < 0) return;
  const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
  (void)syscall(SYS_io_uring_register, ring, 2, &fd, 1);
  (void)close(fd);
}

/// Of this process: until its main thread is a zombie, its table is the main thread's.
char state_of_leader() {
  const auto root = ProcDirectory::open_root();
  const auto stat = root ? root->stat_of(getpid()) : Result<ProcStat>(root.error());
  return stat ? stat->state : '?';
}

/// A holder of every kind.
void add_all_kinds(Crowd& crowd) {
  const auto nothing = [](const auto&) {};
  crowd.add(nothing);
  crowd.add([](const auto&) { open_node(); });
  crowd.add([](const auto&) { open_node(O_PATH); });
  crowd.add([](const auto&) {
    open_node();
    for (int i = 0; i < 3; ++i)
      if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) (void)pause();
      }
  });
  crowd.add([](const auto&) {
    for (int i = 0; i < 4; ++i) map_node(PROT_READ, MAP_PRIVATE);
  });
  crowd.add([](const auto&) {
    int ends[2];
    (void)!pipe(ends);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    (void)!memfd_create("memory", 0);
    make_ring();
    (void)!open("/dev/full", O_WRONLY);
  });
  crowd.add([](const auto& ready) {  // tables of threads: two of one table, one of its own
    std::thread([&] {
      (void)unshare(CLONE_FILES);
      open_node();
      std::thread([] {
        for (;;) (void)pause();
      }).detach();
      std::thread([&] {
        (void)unshare(CLONE_FILES);
        open_node(O_RDONLY);
        map_node(PROT_READ, MAP_PRIVATE);
        ready();
        for (;;) (void)pause();
      }).join();
    }).join();
  });
  crowd.add([](const auto& ready) {  // the leader ends, its threads do not
    open_node();
    map_node(PROT_READ, MAP_PRIVATE);
    for (int i = 0; i < 3; ++i)
      std::thread([&, i] {
        if (i == 2) {
          while (state_of_leader() != 'Z') (void)sched_yield();
          ready();
        }
        for (;;) (void)pause();
      }).detach();
    (void)syscall(SYS_exit, 0);
  });
}

TEST(Scans, FindTheSameOfEveryKind) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  add_all_kinds(crowd);
  const auto procfs = look(ScanMethod::procfs, crowd.pids());
  const auto bpf = look(ScanMethod::bpf, crowd.pids());
  EXPECT_EQ(bpf.use.used, ScanMethod::bpf) << bpf.use.why;
  EXPECT_EQ(bpf.rows, procfs.rows);
  EXPECT_GT(procfs.rows.size(), 20U);
}

TEST(Scans, FindTheSameFilesOfAWatchedFileSystem) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  const int memory = memfd_create("one of its file system", MFD_CLOEXEC);
  const auto identity = read_identity(memory);
  ASSERT_TRUE(identity);
  add_all_kinds(crowd);
  crowd.add([&](const auto&) {
    (void)ftruncate(memory, 8192);
    (void)!mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory, 0);
    (void)!mmap(nullptr, 4096, PROT_READ, MAP_SHARED, memory, 4096);
    (void)!dup(memory);
  });
  const std::vector<std::uint64_t> watched = {identity->device};
  auto procfs = look(ScanMethod::procfs, crowd.pids(), watched);
  const auto bpf = look(ScanMethod::bpf, crowd.pids(), watched);
  (void)close(memory);
  // Who watches looks at files alone: what else a walk over /proc comes by is nothing to him.
  std::erase_if(procfs.rows, [](const auto& row) { return !row.starts_with("file ") && !row.starts_with("mapping "); });
  EXPECT_EQ(bpf.use.used, ScanMethod::bpf) << bpf.use.why;
  EXPECT_EQ(bpf.rows, procfs.rows);
  EXPECT_GE(procfs.rows.size(), 3U);
}

TEST(Scans, FindTheSameInTablesThatAreLargeOrMostlyEmpty) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  crowd.add([](const auto&) {
    open_many_ends();
    open_node();
  });
  crowd.add([](const auto& ready) {  // a thread's own table has longer records
    std::thread([&] {
      (void)unshare(CLONE_FILES);
      open_many_ends();
      open_node();
      ready();
      for (;;) (void)pause();
    }).join();
  });
  crowd.add([](const auto&) {
    const int last = raise_limit() - 1;
    (void)fcntl(open("/dev/zero", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, last);
  });
  const auto procfs = look(ScanMethod::procfs, crowd.pids());
  const auto bpf = look(ScanMethod::bpf, crowd.pids());
  EXPECT_EQ(bpf.use.used, ScanMethod::bpf) << bpf.use.why;
  EXPECT_TRUE(bpf.rows == procfs.rows) << bpf.rows.size() << " and " << procfs.rows.size();
  EXPECT_GT(procfs.rows.size(), 24000U) << "is the hard limit of open files too low?";
}

/// Others that are never the same for two scans.
void add_churn(Crowd& crowd) {
  crowd.add([](const auto& ready) {  // processes that come and go, some by way of another program
    ready();
    for (unsigned n = 0;; ++n) {
      const pid_t child = fork();
      if (child == 0) {
        open_node();
        if (n % 3 == 0) (void)execl("/bin/true", "true", nullptr);
        _exit(0);
      }
      (void)waitpid(child, nullptr, 0);
    }
  });
  crowd.add([](const auto& ready) {  // descriptors
    ready();
    for (;;) {
      const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
      const int copy = dup(fd);
      (void)close(fd);
      int ends[2];
      if (pipe(ends) == 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
      }
      (void)close(copy);
    }
  });
  crowd.add([](const auto& ready) {  // threads, some with tables of their own
    ready();
    for (unsigned n = 0;; ++n)
      std::thread([n] {
        if (n % 2 == 0) (void)unshare(CLONE_FILES);
        open_node();
      }).join();
  });
  crowd.add([](const auto& ready) {  // mappings
    ready();
    for (;;) {
      const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
      void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
      (void)close(fd);
      (void)munmap(mapped, 4096);
    }
  });
}

TEST(Scans, FindTheSameOfThoseThatStayWhileOthersComeAndGo) {
  SKIP_WITHOUT_BPF();
  Crowd stays;
  add_all_kinds(stays);
  const auto quiet = look(ScanMethod::procfs, stays.pids());
  Crowd churn;
  add_churn(churn);
  for (int round = 0; round < 20; ++round) {
    const auto bpf = look(ScanMethod::bpf, stays.pids());
    EXPECT_EQ(bpf.use.used, ScanMethod::bpf) << bpf.use.why;
    EXPECT_EQ(bpf.rows, quiet.rows) << "round " << round;
    if (round % 5 != 0) continue;
    EXPECT_EQ(look(ScanMethod::procfs, stays.pids()).rows, quiet.rows) << "round " << round;
  }
}

/// In a pid namespace of its own, with its /proc: 0 where both find the same and something.
int compare_inside() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 2;
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return 3;
  Crowd crowd;
  add_all_kinds(crowd);
  const auto procfs = look(ScanMethod::procfs, crowd.pids());
  const auto bpf = look(ScanMethod::bpf, crowd.pids());
  if (bpf.use.used != ScanMethod::bpf) return 4;
  if (procfs.rows.size() <= 20) return 5;
  for (const auto& row : procfs.rows)
    if (!bpf.rows.contains(row)) fmt::print("procfs alone: {}\n", row);
  for (const auto& row : bpf.rows)
    if (!procfs.rows.contains(row)) fmt::print("BPF alone: {}\n", row);
  return bpf.rows == procfs.rows ? 0 : 6;
}

TEST(Scans, FindTheSameInAChildPidNamespace) {
  SKIP_WITHOUT_BPF();
  EXPECT_EQ(run_in_pid_namespace(compare_inside), 0);
}

/// The kernel gives up on a program when a signal comes while it looks through it.
TEST(Scans, ByBpfComeAboutWhateverSignalsCome) {
  SKIP_WITHOUT_BPF();
  struct sigaction nothing {
  }, before{};
  nothing.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGALRM, &nothing, &before), 0);
  const itimerval often{{0, 500}, {0, 500}}, never{};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  for (int round = 0; round < 10; ++round) EXPECT_TRUE(check_bpf_scan());
  ASSERT_EQ(setitimer(ITIMER_REAL, &never, nullptr), 0);
  ASSERT_EQ(sigaction(SIGALRM, &before, nullptr), 0);
}

/// With /proc of the parent's namespace numbers of the programs would be others than those of /proc.
TEST(Scans, ByBpfIsRefusedWhereProcIsOfAnotherNamespace) {
  SKIP_WITHOUT_BPF();
  EXPECT_EQ(run_in_pid_namespace([] { return check_bpf_scan() ? 1 : 0; }), 0);
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWPID) == 0 && !check_bpf_scan() ? 0 : 1);
  int status = 0;
  (void)waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "its children would be elsewhere";
}

TEST(Scans, ByBpfIsRefusedWithoutRights) {
  SKIP_WITHOUT_BPF();
  const pid_t child = fork();
  if (child == 0) {
    static constexpr unsigned kNobody = 65534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(2);
    const auto works = check_bpf_scan();
    const auto fallen_back = look(ScanMethod::automatic, {getpid()});
    _exit(!works && works.error().code == ErrorCode::denied && fallen_back.use.used == ScanMethod::procfs ? 0 : 1);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A service's SystemCallFilter= does that where no SystemCallErrorNumber= is set.
TEST(Scans, ByBpfIsNotTriedUnderAFilterThatEndsWhoeverDoes) {
  SKIP_WITHOUT_BPF();
  const pid_t child = fork();
  if (child == 0) {
    sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter{std::size(rules), rules};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(2);
    const auto works = check_bpf_scan();
    const auto fallen_back = look(ScanMethod::bpf, {getpid()});
    _exit(!works && works.error().code == ErrorCode::unsupported && fallen_back.use.used == ScanMethod::procfs ? 0 : 1);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Scans, AreChosenByWhatThereIsToRead) {
  const auto root = ProcDirectory::open_root();
  ASSERT_TRUE(root);
  Process self;
  self.key.pid = getpid();
  self.state = 'R';
  self.threads = 1;
  EXPECT_FALSE(is_worth_bpf(*root, {}));
  EXPECT_FALSE(is_worth_bpf(*root, {self}));
  EXPECT_TRUE(is_worth_bpf(*root, std::vector<Process>(2000, self)));
  std::vector<UniqueFd> many;
  for (int n = 0; n < 1000; ++n) many.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const bool is_counted = read_size(root->descriptor(), "self/fd").value_or(0) > 0;  // 6.2
  EXPECT_EQ(is_worth_bpf(*root, std::vector<Process>(4, self)), is_counted);
  Process thread;
  thread.kernel_thread = true;
  EXPECT_FALSE(is_worth_bpf(*root, std::vector<Process>(5000, thread)));
}

}  // namespace
}  // namespace vacate
