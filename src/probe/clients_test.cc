// SPDX-License-Identifier: Apache-2.0
#include "probe/clients.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "os/process_ref.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeHit hit(pid_t pid, int fd) { return {pid, pid, fd, {}}; }

TEST(GroupByDescription, GroupsWhateverOrderTheyComeIn) {
  // The description of descriptor N of process P is (P + N) % 7 here.
  const CompareHits compare = [](const NodeHit& a, const NodeHit& b) -> Result<int> {
    return (a.pid + a.fd) % 7 - (b.pid + b.fd) % 7;
  };
  std::vector<NodeHit> hits;
  for (pid_t pid = 100; pid < 120; ++pid) hits.push_back(hit(pid, 3));
  const auto [sets, complete] = group_by_description(hits, compare);
  EXPECT_TRUE(complete);
  ASSERT_EQ(sets.size(), 7U);
  EXPECT_THAT(sets[0], ElementsAre(100, 107, 114));
  EXPECT_THAT(sets[6], ElementsAre(106, 113));
}

TEST(GroupByDescription, OneProcessAloneIsNoSetAndEqualSetsAreOne) {
  const CompareHits same = [](const NodeHit& a, const NodeHit& b) -> Result<int> { return a.fd - b.fd; };
  EXPECT_THAT(group_by_description({hit(5, 3), hit(5, 3)}, same).sets, IsEmpty());
  EXPECT_THAT(group_by_description({hit(5, 3), hit(6, 3), hit(5, 4), hit(6, 4)}, same).sets,
              ElementsAre(ElementsAre(5, 6)));
}

TEST(GroupByDescription, AProcessThatEndsHalfWayIsLeftOut) {
  auto code = ErrorCode::gone;
  const CompareHits half = [&](const NodeHit& a, const NodeHit& b) -> Result<int> {
    if (a.pid == 7 || b.pid == 7) return Error{code, ""};
    return a.fd - b.fd;
  };
  auto clients = group_by_description({hit(5, 3), hit(7, 9), hit(6, 3)}, half);
  EXPECT_THAT(clients.sets, ElementsAre(ElementsAre(5, 6)));
  EXPECT_TRUE(clients.complete);
  code = ErrorCode::denied;
  EXPECT_FALSE(group_by_description({hit(5, 3), hit(7, 9), hit(6, 3)}, half).complete);
}

TEST(GroupByDescription, AsksTheKernel) {
  const UniqueFd shared(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const UniqueFd other(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const UniqueFd own(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  if (!compare_descriptions(hit(getpid(), shared.get()), hit(child, shared.get())))
    GTEST_SKIP() << "this kernel has no kcmp";
  const std::vector<NodeHit> hits = {hit(getpid(), shared.get()), hit(getpid(), own.get()), hit(child, shared.get())};
  const auto pair = ElementsAre(std::min(getpid(), child), std::max(getpid(), child));
  EXPECT_THAT(group_by_description(hits, compare_descriptions).sets, ElementsAre(pair));
  const auto found = find_shared_clients(hits);
  EXPECT_THAT(found.sets, ElementsAre(pair));
  EXPECT_TRUE(found.complete);
  const auto closed = compare_descriptions(hit(getpid(), 1000000), hit(child, shared.get()));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ErrorCode::gone);
  EXPECT_NE(*compare_descriptions(hit(getpid(), shared.get()), hit(child, other.get())), 0);
  (void)ProcessRef::open(child)->send_signal(SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(FindSharedClients, ATableOfAThreadsOwnCountsAndADifferentPartIsAnotherSet) {
  const UniqueFd first(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const UniqueFd second(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const auto start = [&](int unwanted) {
    const pid_t child = fork();
    if (child != 0) return child;
    std::thread([&] {
      (void)unshare(CLONE_FILES);
      if (unwanted >= 0) close(unwanted);
      const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
      (void)!write(ready[1], &tid, sizeof tid);
      for (;;) pause();
    }).join();
    _exit(0);
  };
  const pid_t both = start(-1);
  pid_t thread_of_both = 0;
  ASSERT_EQ(read(ready[0], &thread_of_both, sizeof(pid_t)), static_cast<ssize_t>(sizeof(pid_t)));
  const pid_t one = start(second.get());
  pid_t thread_of_one = 0;
  ASSERT_EQ(read(ready[0], &thread_of_one, sizeof(pid_t)), static_cast<ssize_t>(sizeof(pid_t)));
  // What the walk would give: a thread's hit has the process's pid and its own tid.
  const auto clients = find_shared_clients({{getpid(), getpid(), first.get(), {}},
                                            {getpid(), getpid(), second.get(), {}},
                                            {both, thread_of_both, first.get(), {}},
                                            {both, thread_of_both, second.get(), {}},
                                            {one, thread_of_one, first.get(), {}},
                                            {one, thread_of_one, second.get(), {}}});
  for (const pid_t child : {both, one}) {
    (void)ProcessRef::open(child)->send_signal(SIGKILL);
    waitpid(child, nullptr, 0);
  }
  std::vector<pid_t> all = {getpid(), both, one};
  std::vector<pid_t> two = {getpid(), both};
  std::sort(all.begin(), all.end());
  std::sort(two.begin(), two.end());
  EXPECT_THAT(clients.sets, ::testing::UnorderedElementsAre(all, two));
  EXPECT_TRUE(clients.complete);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace vacate
