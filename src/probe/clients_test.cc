// SPDX-License-Identifier: Apache-2.0
#include "probe/clients.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "os/process_ref.h"

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

NodeHit hit(pid_t pid, int fd) { return {pid, pid, fd, {}}; }

TEST(GroupByDescription, GroupsWhateverOrderTheyComeIn) {
  // The description of descriptor N of process P is (P + N) % 7 here.
  const CompareHits compare = [](const NodeHit& a, const NodeHit& b) -> std::optional<int> {
    return (a.pid + a.fd) % 7 - (b.pid + b.fd) % 7;
  };
  std::vector<NodeHit> hits;
  for (pid_t pid = 100; pid < 120; ++pid) hits.push_back(hit(pid, 3));
  const auto sets = group_by_description(hits, compare);
  ASSERT_EQ(sets.size(), 7U);
  EXPECT_THAT(sets[0], ElementsAre(100, 107, 114));
  EXPECT_THAT(sets[6], ElementsAre(106, 113));
}

TEST(GroupByDescription, OneProcessAloneIsNoSetAndEqualSetsAreOne) {
  const CompareHits same = [](const NodeHit& a, const NodeHit& b) -> std::optional<int> { return a.fd - b.fd; };
  EXPECT_THAT(group_by_description({hit(5, 3), hit(5, 3)}, same), IsEmpty());
  EXPECT_THAT(group_by_description({hit(5, 3), hit(6, 3), hit(5, 4), hit(6, 4)}, same), ElementsAre(ElementsAre(5, 6)));
}

TEST(GroupByDescription, AProcessThatEndsHalfWayIsLeftOut) {
  const CompareHits half = [](const NodeHit& a, const NodeHit& b) -> std::optional<int> {
    if (a.pid == 7 || b.pid == 7) return std::nullopt;
    return a.fd - b.fd;
  };
  EXPECT_THAT(group_by_description({hit(5, 3), hit(7, 9), hit(6, 3)}, half), ElementsAre(ElementsAre(5, 6)));
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
  EXPECT_THAT(group_by_description({hit(getpid(), shared.get()), hit(getpid(), own.get()), hit(child, shared.get())},
                                   compare_descriptions),
              ElementsAre(ElementsAre(std::min(getpid(), child), std::max(getpid(), child))));
  EXPECT_NE(compare_descriptions(hit(getpid(), shared.get()), hit(child, other.get())), 0);
  (void)ProcessRef::open(child)->send_signal(SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace vacate
