// SPDX-License-Identifier: Apache-2.0
#include "attribute/shm_trackers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attribute/test_machine.h"

namespace vacate {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TestMachine;

/// A server with its tracker and a worker that has the other end of the tracker's pipe; beside them another tracker.
class Trackers : public ::testing::Test {
 protected:
  Trackers() {
    machine_.actor("tracker", {.argv = {"python3"}});
    machine_.actor("worker", {.argv = {"python3"}});
    machine_.actor("other", {.argv = {"python3"}});
    machine_.pipe(pid("worker"), 5, {pid("tracker")});
  }
  pid_t pid(const char* name) const { return machine_.pid_of(name); }

  TestMachine machine_;
};

TEST_F(Trackers, AreStrangersWithoutAPipeBetweenThem) {
  const auto strangers = strangers_to(machine_.snapshot(), {pid("worker")});
  EXPECT_THAT(strangers, AllOf(Contains(pid("other")), Not(Contains(pid("tracker")))));
}

TEST_F(Trackers, AreNoStrangersWhileAnythingOfTheClientsIsUnknown) {
  auto snapshot = machine_.snapshot();
  for (auto& process : snapshot.processes)
    for (auto& end : process.pipes) end.other_end = Unknown::no_permission;
  EXPECT_THAT(strangers_to(snapshot, {pid("worker")}), IsEmpty());
  EXPECT_THAT(strangers_to(machine_.snapshot(), {pid("worker"), 4242}), IsEmpty()) << "a client that nobody saw";
  for (auto& process : snapshot.processes) process.detailed = false;
  EXPECT_THAT(strangers_to(snapshot, {pid("worker")}), IsEmpty());
  EXPECT_THAT(strangers_to(machine_.snapshot(), {}), IsEmpty());
}

}  // namespace
}  // namespace vacate
