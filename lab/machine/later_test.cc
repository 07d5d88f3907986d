// SPDX-License-Identifier: Apache-2.0
// Actors that come later, numbers that come again, and child pid namespaces.
#include <gmock/gmock.h>

#include <csignal>

#include "lab/machine/test_machine.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vacate::Deadline;

class LaterTest : public MachineTest {};
class PidNamespaceTest : public MachineTest {};

std::string message(const vacate::Result<void>& done) { return done ? "done" : done.error().message; }

TEST_F(LaterTest, ActorsStartWhenAStepSaysSo) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "server"
[[actor]]
name = "late"
parent = "server"
start = "later"
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "below"
parent = "late"
start = "later"
state = "stopped"
[[actor]]
name = "orphan"
parent = "server"
start = "later"
)",
                 [](Machine& m) {
                   Lines lines{m.actor("late").error().message, used(m)};
                   lines.push_back(message(m.start_later({"below", "late"})));
                   lines.push_back(used(m));
                   lines.push_back(ask(m, "ps -o ppid=,stat= -p {below} | xargs") == pid_of(m, "late") + " T"
                                       ? "below late, stopped"
                                       : "elsewhere");
                   end(m, "server", SIGKILL);
                   lines.push_back(message(m.start_later({"orphan"})));
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("no actor is called 'late'", "4", "done", "104", "below late, stopped",
                                "the parent of 'orphan', 'server', has ended"));
}

TEST_F(LaterTest, ANumberIsGivenAgainWhenItIsFree) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "leader"
[[actor]]
name = "victim"
parent = "leader"
[[actor]]
name = "stranger"
start = "later"
[[actor]]
name = "daemon"
parent = "init"
detached = true
start = "later"
[[actor]]
name = "third"
start = "later"
)",
                                [](Machine& m) {
                                  const std::string leader = pid_of(m, "leader");
                                  const std::string victim = pid_of(m, "victim");
                                  end(m, "victim", SIGKILL);
                                  Lines lines{message(m.start_later({"stranger"}, "victim"))};
                                  lines.push_back(pid_of(m, "stranger") == victim ? "same number" : "another");
                                  lines.push_back(m.actor("victim")->ended_by);
                                  lines.push_back(m.actor("stranger")->exited ? "exited" : "lives");
                                  end(m, "stranger", SIGTERM);
                                  lines.push_back(message(m.start_later({"daemon"}, "victim")));
                                  lines.push_back(pid_of(m, "daemon") == victim ? "same number" : "another");
                                  lines.push_back(message(m.start_later({"third"}, "leader")) ==
                                                          leader + " is still the number of a process or a group"
                                                      ? "refused"
                                                      : "taken from somebody");
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre("done", "same number", "KILL", "lives", "done", "same number", "refused"));
}

constexpr const char* kBox = R"(
title = "t"
machine = { gpus = 1 }
[[actor]]
name = "box"
parent = "init"
pidns = "box"
argv = ["entry"]
[[actor]]
name = "worker"
parent = "box"
group = true
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "fork"
parent = "worker"
on_term = "fork"
holds = [{ how = "inherited", from = "worker" }]
[[actor]]
name = "entered"
parent = "shell"
pidns = "box"
start = "later"
[[actor]]
name = "tenant"
)";

/// As ask(), in the child pid namespace.
std::string ask_in_box(Machine& m, const std::string& command, const std::string& child_of = "shell") {
  CommandSpec spec;
  spec.argv = {"bash", "-c", command};
  spec.child_of = child_of;
  if (child_of == "shell") spec.in_pidns = "box";
  const auto result = m.run(spec, Deadline::after(std::chrono::seconds(20)));
  const std::string said = result ? result->out + result->err : result.error().message;
  return std::string(vacate::trim(said));
}

TEST_F(PidNamespaceTest, ItsProcessesSeeThemselvesAndTheDriver) {
  const Lines seen = observe_in(kBox, [](Machine& m) {
    return Lines{
        ask_in_box(m, "ps -eo pid=,ppid=,comm= --sort pid | head -3 | xargs"),
        ask_in_box(m, "readlink /proc/self/ns/pid") == ask(m, "readlink /proc/{worker}/ns/pid") ? "one" : "two",
        ask_in_box(m, "grep -c kthreadd /proc/*/comm | grep -c :1"),
        ask_in_box(m, "ls /proc/driver/nvidia; ls /dev | grep -c nvidia"),
        ask_in_box(m, "ps -o ppid= -p $$ | xargs"),
        ask_in_box(m, "ps -o comm= -p $PPID | xargs", "worker"),
        ask(m, "grep -c . /proc/{fork}/stat; awk '/^NSpid/ {print NF}' /proc/{fork}/status")};
  });
  EXPECT_THAT(seen,
              ElementsAre("1 0 entry 2 1 worker 3 2 fork", "one", "0", "gpus\nversion\n4", "0", "worker", "1\n3"));
}

TEST_F(PidNamespaceTest, NumbersOfTheMachineCanBeGivenInItWhileTheirOwnersLive) {
  const Lines seen = observe_in(kBox, [](Machine& m) {
    Lines lines{message(m.start_later({"entered"}, "tenant"))};
    const std::string inner = ask(m, "awk '/^NSpid/ {print $3}' /proc/{entered}/status");
    lines.push_back(inner == pid_of(m, "tenant") ? "the tenant's number" : inner);
    lines.push_back(m.actor("tenant")->exited ? "tenant ended" : "tenant lives");
    return lines;
  });
  EXPECT_THAT(seen, ElementsAre("done", "the tenant's number", "tenant lives"));
}

TEST_F(PidNamespaceTest, SignalsCopiesAndEndsAreThoseOfTheMachine) {
  const Lines seen = observe_in(kBox, [](Machine& m) {
    (void)m.send_signal("fork", SIGTERM);
    for (int i = 0; i < 1000 && m.expand("fork*")->size() < 2; ++i) usleep(1000);
    for (int i = 0; i < 1000 && m.actor("fork+1")->pid == 0; ++i) usleep(1000);
    Lines lines{ask(m, "ps -o comm= -p {fork+1}"), std::to_string(m.actor("fork")->signal_count)};
    (void)m.send_signal("group:worker", SIGHUP);
    (void)m.wait_exit("worker", Deadline::after(std::chrono::seconds(5)));
    lines.push_back(m.actor("worker")->ended_by);
    lines.push_back(used(m));
    end(m, "box", SIGTERM);
    (void)m.wait_exit("fork", Deadline::after(std::chrono::seconds(5)));
    lines.push_back(m.actor("box")->ended_by + " " + m.actor("fork")->ended_by);
    lines.push_back(used(m));
    return lines;
  });
  EXPECT_THAT(seen, ElementsAre("fork", "1", "HUP", "104", "TERM KILL", "4"));
}

}  // namespace
}  // namespace lab
