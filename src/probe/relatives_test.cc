// SPDX-License-Identifier: Apache-2.0
#include "probe/relatives.h"

#include <gmock/gmock.h>

namespace vacate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Process process(pid_t pid, pid_t ppid, pid_t pgid, pid_t sid) {
  Process made;
  made.key.pid = pid;
  made.ppid = ppid;
  made.pgid = pgid;
  made.sid = sid;
  return made;
}

const std::vector<Process> kProcesses = {
    process(1, 0, 1, 1),     process(2, 0, 0, 0),     process(3, 2, 0, 0),     process(10, 1, 10, 10),
    process(11, 10, 11, 10), process(12, 11, 11, 10), process(13, 12, 13, 13), process(20, 1, 20, 20),
    process(21, 20, 21, 20), process(30, 1, 29, 28),
};

TEST(RelatedProcesses, GroupSessionDescendantsAncestors) {
  EXPECT_THAT(related_processes(kProcesses, {12}), ElementsAre(1, 10, 11, 12, 13));
  EXPECT_THAT(related_processes(kProcesses, {13}), ElementsAre(1, 10, 11, 12, 13));
  EXPECT_THAT(related_processes(kProcesses, {21}), ElementsAre(1, 20, 21));
}

TEST(RelatedProcesses, GroupZeroJoinsNothing) { EXPECT_THAT(related_processes(kProcesses, {3}), ElementsAre(2, 3)); }

TEST(RelatedProcesses, MissingLeadersAndUnknownHolders) {
  EXPECT_THAT(related_processes(kProcesses, {30, 999}), ElementsAre(1, 30));
  EXPECT_THAT(related_processes(kProcesses, {}), IsEmpty());
  EXPECT_THAT(related_processes({}, {1}), IsEmpty());
}

TEST(RelatedProcesses, ACircleOfRecycledPidsEnds) {
  EXPECT_THAT(related_processes({process(5, 6, 5, 5), process(6, 5, 6, 6)}, {5}), ElementsAre(5, 6));
}

}  // namespace
}  // namespace vacate
