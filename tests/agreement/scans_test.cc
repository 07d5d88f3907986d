// SPDX-License-Identifier: Apache-2.0
// Both scans on the same processes, which hold a stand-in for a GPU node in every way a process can: they find the
// same, on a quiet machine, on one where others fork, exec, open, close and start threads all the time, and in a child
// pid namespace. Needs root and a kernel that takes BPF programs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "os/system_calls.h"
#include "probe/look_at_processes.h"
#include "probe/scan_bpf.h"

namespace vacate {
namespace {

using ::testing::IsEmpty;

/// Major 1 has /dev/null, /dev/zero and their like: what processes have open of it stands for nodes of a GPU.
DeviceNodes stand_ins() {
  DeviceMajors majors;
  majors.known = true;
  majors.entries.push_back({1, NodeRole::gpu});
  return {{}, majors};
}

using Rows = std::set<std::string>;

/// What a walk found of `pids`, one row each, without its order.
Rows rows_of(const Walk& walk, const Mappings& mappings, const std::set<pid_t>& pids) {
  Rows rows;
  for (const auto& hit : walk.hits)
    if (pids.contains(hit.pid))
      rows.insert(fmt::format("hit {} {} {} {} {}", hit.pid, hit.tid, hit.fd, hit.node.first, hit.node.second));
  for (const auto& end : walk.channels)
    if (pids.contains(end.pid))
      rows.insert(fmt::format("channel {} {} {} {} {}", end.pid, end.tid, end.fd, end.inode, end.is_socket));
  for (const auto& file : walk.files)
    if (pids.contains(file.pid))
      rows.insert(fmt::format("file {} {} {} {} {}", file.pid, file.tid, file.fd, file.device, file.inode));
  for (const auto& ring : walk.rings)
    if (pids.contains(ring.pid)) rows.insert(fmt::format("ring {} {} {}", ring.pid, ring.fd, ring.path));
  for (const auto& hit : mappings.hits)
    if (pids.contains(hit.pid))
      rows.insert(fmt::format("mapping {} {} {} {}", hit.pid, hit.node.first, hit.node.second, hit.count));
  for (const auto pid : walk.denied)
    if (pids.contains(pid)) rows.insert(fmt::format("denied {}", pid));
  for (const auto& [pid, why] : walk.failed)
    if (pids.contains(pid)) rows.insert(fmt::format("failed {} {}", pid, why));
  for (const auto& list : {mappings.denied, mappings.stuck, mappings.failed})
    for (const auto pid : list)
      if (pids.contains(pid)) rows.insert(fmt::format("mapping unread {}", pid));
  return rows;
}

struct Seen {
  Rows rows;
  std::size_t channel_ends = 0;  ///< in tables of processes; rows would hide one that was found twice
  ScanMethod used = ScanMethod::procfs;
};

Seen look(ScanMethod method, const std::set<pid_t>& pids, const std::vector<std::uint64_t>& watched = {}) {
  const auto root = ProcDirectory::open_root();
  const auto nodes = stand_ins();
  Walker walker(*root, nodes, 1, watched);
  if (!walker.list_processes()) return {};
  const auto looked = look_at_processes(walker, nodes, watched, method);
  const auto& ends = walker.result().channels;
  const auto counts = [&](const ChannelEnd& end) { return end.tid == end.pid && pids.contains(end.pid); };
  const auto channel_ends = static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), counts));
  return {rows_of(walker.result(), looked.mappings, pids), channel_ends, looked.use.used};
}

/// Processes that end with the test.
class Crowd {
 public:
  Crowd() = default;
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const auto pid : pids_) {
      const UniqueFd pidfd(open_pidfd(pid));
      if (pidfd) (void)signal_pidfd(pidfd.get(), SIGKILL);
      (void)waitpid(pid, nullptr, __WALL);
    }
  }

  /// A child that does `work` and then waits; it is ready when this returns.
  template <class Work>
  pid_t add(const Work& work) {
    int ends[2] = {-1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)close(ends[0]);
      work([&] { (void)!write(ends[1], "x", 1); });
      (void)!write(ends[1], "x", 1);
      for (;;) (void)pause();
    }
    (void)close(ends[1]);
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
    (void)close(ends[0]);
    pids_.insert(pid);
    return pid;
  }
  [[nodiscard]] const std::set<pid_t>& pids() const noexcept { return pids_; }

 private:
  std::set<pid_t> pids_;
};

void open_node(int flags = O_RDWR) { (void)!open("/dev/zero", flags | O_CLOEXEC); }

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

bool is_usable(std::string& why) {
  const auto works = check_bpf_scan();
  if (!works) why = works.error().message;
  return works.has_value();
}

#define SKIP_WITHOUT_BPF()                          \
  if (geteuid() != 0) GTEST_SKIP() << "needs root"; \
  if (std::string why; !is_usable(why)) GTEST_SKIP() << "no BPF: " << why

TEST(Scans, FindTheSameOfEveryKind) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  add_all_kinds(crowd);
  const auto procfs = look(ScanMethod::procfs, crowd.pids());
  const auto bpf = look(ScanMethod::bpf, crowd.pids());
  EXPECT_EQ(bpf.used, ScanMethod::bpf);
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
  EXPECT_EQ(bpf.used, ScanMethod::bpf);
  EXPECT_EQ(bpf.rows, procfs.rows);
  EXPECT_GE(procfs.rows.size(), 3U);
}

/// Of open files, to the highest; that.
int raise_limit() {
  rlimit limit{};
  (void)getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1000000));
}

/// So many ends that what is to be reported of one table is more than a report has room for.
void open_many_ends() {
  static constexpr int kMany = 12000;
  raise_limit();
  int ends[2];
  (void)!pipe(ends);
  for (int n = 0; n < kMany; ++n) (void)dup(ends[n % 2]);
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
  EXPECT_EQ(bpf.used, ScanMethod::bpf);
  EXPECT_TRUE(bpf.rows == procfs.rows) << bpf.rows.size() << " and " << procfs.rows.size();
  EXPECT_GT(procfs.rows.size(), 24000U) << "is the hard limit of open files too low?";
}

bool has_row(const Seen& seen, const std::string& start) {
  return std::any_of(seen.rows.begin(), seen.rows.end(), [&](const auto& row) { return row.starts_with(start); });
}

/// Its main thread lets another have its table and goes on with a copy, again and again.
void exchange_table_for_ever() {
  for (;;) {
    std::thread other([] { (void)sched_yield(); });
    (void)unshare(CLONE_FILES);
    other.join();
  }
}

TEST(Scans, FindAHolderThatExchangesItsTableAllTheTime) {
  SKIP_WITHOUT_BPF();
  static constexpr int kKept = 700;
  Crowd crowd;
  const pid_t holder = crowd.add([](const auto& ready) {
    for (int n = 0; n < kKept; ++n) (void)open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)dup2(open("/dev/zero", O_RDWR | O_CLOEXEC), kKept + 1);
    ready();
    exchange_table_for_ever();
  });
  const auto row = fmt::format("hit {} {} {} ", holder, holder, kKept + 1);
  int by_bpf = 0;
  for (int round = 0; round < 100; ++round) {
    const auto seen = look(ScanMethod::bpf, crowd.pids());
    EXPECT_TRUE(has_row(seen, row)) << "round " << round << (seen.used == ScanMethod::bpf ? ", by BPF" : ", by /proc");
    by_bpf += seen.used == ScanMethod::bpf ? 1 : 0;
  }
  EXPECT_GT(by_bpf, 0) << "not one look by BPF came to its end";
}

/// Its number is of a node at every moment, but never of one open file for long.
TEST(Scans, FindADescriptorWhoseFileIsReplacedAllTheTime) {
  SKIP_WITHOUT_BPF();
  static constexpr int kKept = 40;
  Crowd crowd;
  const pid_t holder = crowd.add([](const auto& ready) {
    (void)dup2(open("/dev/zero", O_RDWR | O_CLOEXEC), kKept);
    ready();
    for (;;) {
      const int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
      (void)dup2(fd, kKept);
      (void)close(fd);
    }
  });
  const auto row = fmt::format("hit {} {} {} ", holder, holder, kKept);
  for (int round = 0; round < 150; ++round)
    for (const auto method : {ScanMethod::bpf, ScanMethod::procfs})
      EXPECT_TRUE(has_row(look(method, crowd.pids()), row))
          << "round " << round << (method == ScanMethod::bpf ? " by BPF" : " by /proc");
}

/// A number that is of a node that is only named, and then of another file that is open in earnest, in turn.
TEST(Scans, TakeNobodyForAHolderWhoOnlyNamesANode) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  crowd.add([](const auto& ready) {
    for (int fd = 0; fd < 3; ++fd) (void)dup2(open("/etc/passwd", O_RDONLY | O_CLOEXEC), fd);  // no node of the test's
    ready();
    (void)close_range(3, ~0U, 0);
    for (;;)
      for (const int flags : {O_PATH, O_RDWR}) {
        for (int n = 0; n < 16; ++n) (void)open(flags == O_PATH ? "/dev/zero" : "/etc/passwd", flags);
        (void)close_range(3, ~0U, 0);
      }
  });
  for (int round = 0; round < 100; ++round)
    for (const auto method : {ScanMethod::bpf, ScanMethod::procfs})
      EXPECT_FALSE(has_row(look(method, crowd.pids()), "hit "))
          << "round " << round << (method == ScanMethod::bpf ? " by BPF" : " by /proc");
}

/// Its table does not go into one report, so it is exchanged between two as well.
TEST(Scans, FindNothingTwiceInALargeTableThatIsExchangedAllTheTime) {
  SKIP_WITHOUT_BPF();
  Crowd crowd;
  crowd.add([](const auto& ready) {
    open_many_ends();
    ready();
    exchange_table_for_ever();
  });
  const auto expected = look(ScanMethod::procfs, crowd.pids()).channel_ends;
  EXPECT_GT(expected, 12000U);
  for (int round = 0; round < 50; ++round)
    EXPECT_EQ(look(ScanMethod::bpf, crowd.pids()).channel_ends, expected) << "round " << round;
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
    EXPECT_EQ(bpf.used, ScanMethod::bpf);
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
  if (bpf.used != ScanMethod::bpf) return 4;
  if (procfs.rows.size() <= 20) return 5;
  for (const auto& row : procfs.rows)
    if (!bpf.rows.contains(row)) fmt::print("procfs alone: {}\n", row);
  for (const auto& row : bpf.rows)
    if (!procfs.rows.contains(row)) fmt::print("BPF alone: {}\n", row);
  return bpf.rows == procfs.rows ? 0 : 6;
}

/// The exit code of `work` in a child that is the first process of a new pid namespace.
template <class Work>
int run_in_pid_namespace(const Work& work) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(90);
    const pid_t first = fork();
    if (first == 0) {
      const int code = work();
      (void)fflush(stdout);
      _exit(code);
    }
    int status = 0;
    (void)waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 91);
  }
  int status = 0;
  (void)waitpid(outer, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 92;
}

TEST(Scans, FindTheSameInAChildPidNamespace) {
  SKIP_WITHOUT_BPF();
  EXPECT_EQ(run_in_pid_namespace(compare_inside), 0);
}

void set_next_pid(int pid) {
  const auto text = std::to_string(pid - 1);
  const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  (void)!write(fd, text.data(), text.size());
  (void)close(fd);
}

/// Numbers came round: the thread is walked past long before its process, in whose table the node is then. When the
/// walk comes to the process, the main thread has left that table. How many of twenty scans did not find the node?
int miss_inside() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 92;
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return 93;
  Crowd between;
  set_next_pid(2000);
  for (int n = 0; n < 4; ++n) between.add([](const auto&) { open_many_ends(); });
  int missed = 0;
  for (int round = 0; round < 20; ++round) {
    Crowd crowd;
    set_next_pid(3000);
    const pid_t holder = crowd.add([&](const auto& ready) {
      open_node();
      set_next_pid(1000);
      std::thread([] {
        for (;;) (void)pause();
      }).detach();
      ready();
      (void)usleep(static_cast<unsigned>(round) * 1000);
      if (round % 2 == 0) (void)syscall(SYS_exit, 0);
      (void)unshare(CLONE_FILES);
      (void)close_range(0, ~0U, 0);
    });
    missed += has_row(look(ScanMethod::bpf, crowd.pids()), fmt::format("hit {} ", holder)) ? 0 : 1;
  }
  return missed;
}

TEST(Scans, FindAThreadWhoseNumberIsLowerThanThatOfItsProcess) {
  SKIP_WITHOUT_BPF();
  EXPECT_EQ(run_in_pid_namespace(miss_inside), 0);
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
    _exit(!works && works.error().code == ErrorCode::denied && fallen_back.used == ScanMethod::procfs ? 0 : 1);
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
    _exit(!works && works.error().code == ErrorCode::unsupported && fallen_back.used == ScanMethod::procfs ? 0 : 1);
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
