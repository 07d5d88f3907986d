// SPDX-License-Identifier: Apache-2.0
// Clients of MPS: through their control daemon or not at all (report BR-096).
#include <gmock/gmock.h>

#include "stages.h"

namespace vacate::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A control daemon, its server, an orphaned client and one of alice's.
class Mps : public ::testing::Test {
 protected:
  Mps() {
    m.actor("control",
            {.parent = "init", .argv = {"nvidia-cuda-mps-control", "-d"}, .exe = "/usr/bin/nvidia-cuda-mps-control"})
        .actor("server",
               {.parent = "control", .argv = {"nvidia-cuda-mps-server"}, .exe = "/usr/bin/nvidia-cuda-mps-server"})
        .hold("server", {.mib = 27})
        .actor("launcher")
        .actor("orphan", {.parent = "launcher"})
        .hold("orphan", {.mib = 4000, .how = Hold::How::mps})
        .actor("alices", {.uid = 1000})
        .hold("alices", {.mib = 3000, .how = Hold::How::mps})
        .dies("launcher");
  }

  /// With a daemon of `uid`'s that lists these.
  [[nodiscard]] Stages stages(uid_t uid, std::vector<pid_t> clients) const {
    auto snapshot = m.snapshot();
    MpsDaemon daemon;
    daemon.key = snapshot.find(m.pid_of("control"))->key;
    daemon.uid = uid;
    daemon.pipe_directory = "/tmp/nvidia-mps";
    daemon.answered = true;
    std::sort(clients.begin(), clients.end());
    daemon.servers = {{m.pid_of("server"), std::move(clients)}};
    snapshot.mps_daemons = {daemon};
    return Stages(std::move(snapshot));
  }
  [[nodiscard]] Stages stages_of_both() const { return stages(0, {m.pid_of("orphan"), m.pid_of("alices")}); }

  TestMachine m;
};

TEST_F(Mps, TheDaemonEndsAnOrphanThatItLists) {
  const auto plan = stages_of_both().plan();
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.steps[0].action, Action::terminate_client);
  EXPECT_EQ(plan.steps[0].key.pid, m.pid_of("orphan"));
  EXPECT_EQ(plan.steps[0].mps_server, m.pid_of("server"));
  EXPECT_THAT(plan.steps[0].because, Contains(HasSubstr("terminate_client")));
}

TEST_F(Mps, NoDaemonNoEnd) {
  const auto plan = Stages(m).plan();
  EXPECT_TRUE(ended(plan).empty());
  EXPECT_EQ(refused(plan), pids(m, {"orphan"}));
  EXPECT_THAT(step_of(plan, m.pid_of("orphan")).because.front(), HasSubstr("no control daemon was found here"));
}

TEST_F(Mps, ADaemonThatListsOthersIsNotTold) {
  const auto plan = stages(0, {m.pid_of("alices")}).plan();
  EXPECT_FALSE(plan.ends_anybody());
  EXPECT_THAT(step_of(plan, m.pid_of("orphan")).because.front(), HasSubstr("does not list it"));
}

TEST_F(Mps, OneThatDoesNotAnswerIsNamed) {
  auto silent = stages_of_both().snapshot;
  silent.mps_daemons[0].answered = Unknown::timed_out;
  silent.mps_daemons[0].detail = "does not answer";
  silent.mps_daemons[0].servers.clear();
  const auto plan = Stages(silent).plan();
  EXPECT_FALSE(plan.ends_anybody());
  EXPECT_THAT(step_of(plan, m.pid_of("orphan")).because.front(), HasSubstr("does not answer"));
}

TEST_F(Mps, AnotherUsersDaemonIsBelievedOfItsOwnOnly) {
  const auto both = stages(1000, {m.pid_of("orphan"), m.pid_of("alices")});
  EXPECT_FALSE(both.plan().ends_anybody());
  EXPECT_THAT(step_of(both.plan(), m.pid_of("orphan")).because.front(), HasSubstr("another user's"));
  EXPECT_EQ(step_of(both.plan(naming(m.pid_of("alices"))), m.pid_of("alices")).action, Action::terminate_client);
}

TEST_F(Mps, TermOnlyIsNoWayForTheDaemon) {
  FreeRequest request;
  request.term_only = true;
  const auto plan = stages_of_both().plan(request);
  EXPECT_FALSE(plan.ends_anybody());
  EXPECT_EQ(refused(plan), pids(m, {"orphan"}));
}

TEST_F(Mps, EvenIsObeyedOnlyWhereNoServerIsLeft) {
  const auto orphan = m.pid_of("orphan");
  EXPECT_EQ(refused(Stages(m).plan(naming(orphan, true))), pids(m, {"orphan"}));
  m.dies("server").dies("control");
  EXPECT_EQ(ended(Stages(m).plan(naming(orphan, true))), pids(m, {"orphan"}));
  EXPECT_EQ(refused(Stages(m).plan(naming(orphan))), pids(m, {"orphan"}));
}

TEST_F(Mps, ServerAndDaemonStayProtected) {
  auto request = with_scope(Scope::all);
  request.selection.users = {0, 1000};
  const auto plan = stages_of_both().plan(request);
  EXPECT_EQ(step_of(plan, m.pid_of("server")).action, Action::refuse);
  EXPECT_EQ(step_of(plan, m.pid_of("orphan")).action, Action::terminate_client);
  EXPECT_EQ(step_of(plan, m.pid_of("alices")).action, Action::terminate_client);
}

TEST_F(Mps, TheServerNeverGoesBeforeItsClients) {
  const auto server = m.pid_of("server");
  auto request = naming(server, true);
  const auto alone = stages_of_both().plan(request);
  EXPECT_EQ(refused(alone), pids(m, {"server"}));
  EXPECT_THAT(step_of(alone, server).because.front(), HasSubstr("end them first or with it"));
  request.selection.pids.push_back({m.pid_of("orphan"), std::nullopt});
  request.selection.pids.push_back({m.pid_of("alices"), std::nullopt});
  const auto together = stages_of_both().plan(request);
  EXPECT_EQ(ended(together), pids(m, {"server"}));
  EXPECT_EQ(step_of(together, m.pid_of("alices")).action, Action::terminate_client);
}

}  // namespace
}  // namespace vacate::testing
