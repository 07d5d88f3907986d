// SPDX-License-Identifier: Apache-2.0
// Walks over a machine that changes meanwhile: processes come and go, descriptors and threads too. Whoever holds the
// node all the time is found each time, with every descriptor of it, and nobody who never had it.
#include "probe/walk.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <set>
#include <thread>
#include <tuple>

#include "base/deadline.h"
#include "os/system_calls.h"

namespace vacate {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::seconds kChurn{3};

/// A process of this test: runs `life` after it has said that it is there, and ends with the test.
class Resident {
 public:
  Resident(const std::function<void()>& prepare, const std::function<void()>& life) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGCHLD, SIG_IGN);  // its own children are nobody's business
      prepare();
      (void)!write(ready[1], "r", 1);
      life();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    (void)!read(ready[0], &byte, 1);
    close(ready[0]);
  }
  Resident(Resident&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Resident& operator=(Resident&&) = delete;
  ~Resident() {
    if (pid_ <= 0) return;
    const UniqueFd pidfd(open_pidfd(pid_));
    if (pidfd) (void)signal_pidfd(pidfd.get(), SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

void rest() {
  for (;;) pause();
}

/// A file of this test alone, taken for a GPU node.
class Node {
 public:
  Node() : fd_(mkostemp(path_, O_CLOEXEC)) {
    const auto file = read_identity(fd_);
    DeviceNode node;
    node.role = NodeRole::gpu;
    node.device = file->device;
    node.inode = file->inode;
    nodes_.emplace(std::vector<DeviceNode>{node}, DeviceMajors{});
    close(fd_);
  }
  ~Node() { unlink(path_); }
  void open_at(int fd) const {
    const int file = open(path_, O_RDWR);
    if (file != fd) dup2(file, fd), close(file);
  }
  [[nodiscard]] const char* path() const { return path_; }
  [[nodiscard]] const DeviceNodes& nodes() const { return *nodes_; }

 private:
  char path_[32] = "/tmp/vacate-node-XXXXXX";
  int fd_;
  std::optional<DeviceNodes> nodes_;
};

using Found = std::set<std::tuple<pid_t, pid_t, int>>;

struct Look {
  Found hits;
  std::size_t channels = 0;
  std::vector<std::pair<pid_t, std::string>> failed;
  bool ordered = true;
};

Look look(const ProcDirectory& root, const Node& node) {
  Walker walker(root, node.nodes(), own_pid_namespace());
  EXPECT_TRUE(walker.list_processes());
  walker.walk_all_descriptors();
  const auto& walk = walker.result();
  Look look;
  for (const auto& hit : walk.hits) look.hits.insert({hit.pid, hit.tid, hit.fd});
  look.channels = walk.channels.size();
  look.failed = walk.failed;
  pid_t last = 0;
  for (const auto& end : walk.channels) {
    look.ordered = look.ordered && last <= end.pid;
    last = end.pid;
  }
  look.ordered = look.ordered && std::is_sorted(walk.hits.begin(), walk.hits.end(),
                                                [](const NodeHit& a, const NodeHit& b) { return a.pid < b.pid; });
  look.ordered =
      look.ordered && std::is_sorted(walk.processes.begin(), walk.processes.end(),
                                     [](const Process& a, const Process& b) { return a.key.pid < b.key.pid; });
  return look;
}

/// Short-lived children, as a compiler run has them.
void fork_and_exit() {
  for (;;) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child < 0) sched_yield();
  }
}

/// Descriptors that are gone when they are asked about, in a table that grows and shrinks.
void open_and_close() {
  for (unsigned round = 0;; ++round) {
    int ends[2];
    std::vector<int> opened;
    for (int i = 0; i < 50; ++i)
      if (pipe(ends) == 0) opened.insert(opened.end(), {ends[0], ends[1]});
    opened.push_back(dup2(0, 200 + static_cast<int>(round % 50)));
    for (const int fd : opened) close(fd);
  }
}

/// Threads that come and go, every other with a table of its own.
void start_and_end_threads() {
  for (;;) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([i] { (void)(i % 2 == 0 && unshare(CLONE_FILES)); });
    for (auto& thread : threads) thread.join();
  }
}

void exec_again() {
  execl("/bin/sh", "sh", "-c",
        "exec 3</dev/null; exec \"$0\" -c 'i=0; while [ $i -lt 100000 ]; do /bin/true; i=$((i+1)); done'", "/bin/sh",
        nullptr);
}

TEST(WalkUnderChurn, StableHoldersAreAlwaysFoundAndNobodyIsInvented) {
  const auto root = ProcDirectory::open_root();
  ASSERT_TRUE(root);
  const Node node;
  std::vector<Resident> residents;
  Found wanted;
  // Enough processes for more than one worker, a holder among every eight.
  for (int i = 0; i < 120; ++i) {
    const bool holds = i % 8 == 0;
    residents.emplace_back(
        [&] {
          if (holds) node.open_at(40 + i), node.open_at(300 + i);
        },
        rest);
    const pid_t pid = residents.back().pid();
    if (holds) wanted.insert({{pid, pid, 40 + i}, {pid, pid, 300 + i}});
  }
  // In a table of a thread's own, beside threads that share one.
  int tids[2];
  ASSERT_EQ(pipe2(tids, O_CLOEXEC), 0);
  const Resident threaded(
      [&] {
        for (int i = 0; i < 20; ++i) std::thread(rest).detach();
        std::thread([&] {
          (void)unshare(CLONE_FILES);
          node.open_at(77);
          const pid_t tid = gettid();
          (void)!write(tids[1], &tid, sizeof tid);
          rest();
        }).detach();
      },
      rest);
  pid_t tid = 0;
  ASSERT_EQ(read(tids[0], &tid, sizeof tid), static_cast<ssize_t>(sizeof tid));
  wanted.insert({threaded.pid(), tid, 77});

  const Resident flapping([] {},
                          [&] {
                            for (;;) close(open(node.path(), O_RDWR));
                          });
  const Resident forking([] {}, fork_and_exit);
  const Resident opening([] {}, open_and_close);
  const Resident threading([] {}, start_and_end_threads);
  const Resident executing([] {}, exec_again);

  const auto end = Deadline::after(kChurn);
  do {
    const auto seen = look(*root, node);
    for (const auto& place : wanted) ASSERT_THAT(seen.hits, Contains(place));
    for (const auto& place : seen.hits)
      ASSERT_TRUE(wanted.contains(place) || std::get<0>(place) == flapping.pid()) << std::get<0>(place);
    ASSERT_THAT(seen.failed, IsEmpty());
    ASSERT_TRUE(seen.ordered);
  } while (!end.passed());
}

TEST(Walk, IsTheSameEachTimeOnAMachineThatRests) {
  const auto root = ProcDirectory::open_root();
  ASSERT_TRUE(root);
  const Node node;
  std::vector<Resident> residents;
  std::set<pid_t> ours;
  for (int i = 0; i < 100; ++i) {
    residents.emplace_back(
        [] {
          int ends[2];
          for (int k = 0; k < 10; ++k) (void)!pipe(ends);
        },
        rest);
    ours.insert(residents.back().pid());
  }
  const auto ends_of_ours = [&] {
    Walker walker(*root, node.nodes(), own_pid_namespace());
    EXPECT_TRUE(walker.list_processes());
    walker.walk_all_descriptors();
    std::vector<ChannelEnd> ends;
    for (const auto& end : walker.result().channels)
      if (ours.contains(end.pid) && end.fd > 2) ends.push_back(end);
    return ends;
  };
  const auto first = ends_of_ours();
  EXPECT_GE(first.size(), 2000U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ends_of_ours(), first);
}

}  // namespace
}  // namespace vacate
