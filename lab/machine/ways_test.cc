// SPDX-License-Identifier: Apache-2.0
// Ways of holding that no look at the process's own descriptors finds, and states that decide whether a signal helps:
// is what the product will see what the kernel shows of the real thing (facts.md 3.1, 3.6)?
#include <gmock/gmock.h>

#include <csignal>

#include "lab/machine/machine_impl.h"
#include "lab/machine/test_machine.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

using vacate::Deadline;

class HoldingTest : public MachineTest {};
class ConditionTest : public MachineTest {};

/// How many descriptors of device nodes a folder of descriptors has.
std::string nodes_in(Machine& m, const std::string& folder) {
  return ask(m, fmt::format("for f in {}; do readlink $f; done | grep -c nvidia", folder));
}

bool exits_within(Machine& m, const std::string& name, int milliseconds) {
  return m.wait_exit(name, Deadline::after(std::chrono::milliseconds(milliseconds))).has_value();
}

TEST_F(HoldingTest, AThreadHasWhatItsProcessHasNot) {
  const Lines seen = observe_in(R"(
title = "t"
machine = { gpus = 2 }
[[actor]]
name = "main"
holds = [{ gpu = 0, memory = 300 }]
[[actor]]
name = "child"
parent = "main"
holds = [{ how = "thread", from = "main" }]
[[actor]]
name = "own"
parent = "main"
holds = [{ gpu = 1, memory = 200, how = "thread" }]
)",
                                [](Machine& m) {
                                  Lines lines;
                                  for (const std::string name : {"{child}", "{own}"}) {
                                    lines.push_back(nodes_in(m, "/proc/" + name + "/fd/*"));
                                    lines.push_back(nodes_in(m, "/proc/" + name + "/task/*/fd/*"));
                                    lines.push_back(ask(m, "ls /proc/" + name + "/task | wc -l"));
                                  }
                                  // The thread has nothing else: no end of a birth pipe.
                                  lines.push_back(ask(m, "ls -l /proc/{own}/task/*/fd/ | grep -c pipe"));
                                  end(m, "main", SIGKILL);
                                  lines.push_back(used(m));
                                  end(m, "child", SIGTERM);
                                  end(m, "own", SIGKILL);
                                  lines.push_back(m.actor("child")->ended_by);
                                  lines.push_back(used(m));
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre("0", "3", "2", "0", "3", "2", "1", "304 204", "TERM", "4 4"));
}

TEST_F(HoldingTest, WhatIsInFlightIsInNobodysTable) {
  const Lines seen =
      observe_in(R"(
title = "t"
machine = { gpus = 2 }
[[actor]]
name = "exporter"
holds = [{ gpu = 1, memory = 200 }]
[[actor]]
name = "broker"
parent = "exporter"
pipe = false
holds = [{ how = "in-flight", from = "exporter" }]
[[actor]]
name = "relay"
holds = [{ gpu = 0, memory = 300, how = "in-flight" }]
)",
                 [](Machine& m) {
                   Lines lines;
                   for (const std::string name : {"{broker}", "{relay}"}) {
                     lines.push_back(descriptors(m, name.substr(1, name.size() - 2)));
                     lines.push_back(ask(m, "cat /proc/" + name + "/fdinfo/* | grep scm_fds | sort | xargs"));
                     lines.push_back(ask(m, "grep -c nvidia /proc/" + name + "/maps"));
                   }
                   end(m, "exporter", SIGKILL);
                   lines.push_back(used(m));
                   end(m, "broker", SIGKILL);
                   lines.push_back(used(m));
                   end(m, "relay", SIGTERM);
                   lines.push_back(used(m));
                   return lines;
                 });
  const std::string sockets = "/dev/null /dev/null /dev/null socket: socket:";
  EXPECT_THAT(seen, ElementsAre(sockets, "scm_fds: 0 scm_fds: 3", "0", sockets, "scm_fds: 0 scm_fds: 3", "0", "304 204",
                                "304 4", "4 4"));
}

TEST_F(HoldingTest, AnImportOutlivesItsExporter) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "exporter"
user = "alice"
holds = [{ gpu = 0, memory = 500 }]
[[actor]]
name = "importer"
user = "bob"
holds = [{ gpu = 0, memory = 300 }, { gpu = 0, memory = 2000, how = "exported", from = "exporter" }]
[[actor]]
name = "keeper"
holds = [{ how = "exported", from = "exporter" }]
)",
                                [](Machine& m) {
                                  Lines lines{used(m), descriptors(m, "exporter"), descriptors(m, "keeper")};
                                  lines.push_back(std::to_string(read_driver_state(kDriverDir)->clients.size()));
                                  end(m, "exporter", SIGKILL);
                                  lines.push_back(used(m));
                                  end(m, "keeper", SIGKILL);
                                  lines.push_back(used(m));
                                  end(m, "importer", SIGKILL);
                                  lines.push_back(used(m));
                                  return lines;
                                });
  const std::string null = "/dev/null /dev/null /dev/null";
  EXPECT_THAT(seen, ElementsAre("2804", null + " /dev/nvidia-uvm /dev/nvidia0 /dev/nvidiactl", null + " /dev/nvidiactl",
                                "3", "2804", "2304", "4"));
}

TEST_F(ConditionTest, KillFindsItStuckInTheDriver) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "forever"
on_term = "ignore"
on_kill = "stuck"
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "while"
on_kill = "stuck"
stuck = 0.4
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "polite"
on_kill = "stuck"
holds = [{ gpu = 0, memory = 100 }]
)",
                 [](Machine& m) {
                   Lines lines{ask(m, "cat /proc/{forever}/wchan")};
                   (void)m.send_signal("forever", SIGTERM);
                   lines.push_back(std::to_string(m.actor("forever")->signal_count));
                   (void)m.send_signal("forever", SIGKILL);
                   (void)m.send_signal("while", SIGKILL);
                   lines.push_back(exits_within(m, "while", 200) ? "at once" : "stuck");
                   lines.push_back(exits_within(m, "while", 5000) ? "then ended" : "still stuck");
                   lines.push_back(exits_within(m, "forever", 100) ? "ended" : "still stuck");
                   lines.push_back(ask(m, "ps -o stat= -p {forever} | cut -c1; cat /proc/{forever}/wchan"));
                   end(m, "polite", SIGTERM);
                   lines.push_back(m.actor("polite")->ended_by);
                   lines.push_back(used(m));
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("request_wait_answer", "1", "stuck", "then ended", "still stuck",
                                "D\nrequest_wait_answer", "TERM", "104"));
}

TEST_F(ConditionTest, ASlowEndHasNoDescriptorsLeft) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "main"
on_kill = "exiting"
stuck = 0.6
holds = [{ gpu = 0, memory = 100, count = 9 }]
[[actor]]
name = "loader"
parent = "main"
holds = [{ how = "inherited", from = "main" }]
[[actor]]
name = "polite"
on_kill = "exiting"
holds = [{ gpu = 0, memory = 100 }]
)",
                                [](Machine& m) {
                                  end(m, "loader", SIGKILL);
                                  Lines lines{m.actor("loader")->ended_by};
                                  (void)m.send_signal("main", SIGKILL);
                                  lines.push_back(exits_within(m, "main", 200) ? "at once" : "exiting");
                                  lines.push_back(ask(m,
                                                      "ls /proc/{main}/fd | wc -l; cat /proc/{main}/wchan; "
                                                      "tr -d '\\0' </proc/{main}/cmdline"));
                                  lines.push_back(used(m));
                                  lines.push_back(exits_within(m, "main", 2000) ? "then ended" : "still there");
                                  end(m, "polite", SIGTERM);
                                  lines.push_back(m.actor("polite")->ended_by);
                                  lines.push_back(used(m));
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre("KILL", "exiting", "0\nrequest_wait_answer", "204", "then ended", "TERM", "4"));
}

TEST_F(ConditionTest, ATracedProcessStandsStill) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "parent"
[[actor]]
name = "traced"
parent = "parent"
state = "traced"
holds = [{ gpu = 0, memory = 100 }]
)",
                 [](Machine& m) {
                   Lines lines{ask(m, "ps -o stat= -p {traced} | cut -c1"),
                               ask(m, "cat /proc/$(awk '/^TracerPid/ {print $2}' /proc/{traced}/status)/comm")};
                   (void)m.send_signal("traced", SIGTERM);
                   lines.push_back(std::to_string(m.actor("traced")->signal_count));
                   lines.push_back(exits_within(m, "traced", 100) ? "ended" : "lives");
                   end(m, "traced", SIGKILL);
                   for (int i = 0; i < 2000 && m.actor("traced")->ended_by != "KILL"; ++i) usleep(1000);
                   lines.push_back(m.actor("traced")->ended_by);
                   lines.push_back(used(m));
                   lines.push_back(ask(m,
                                       "for i in $(seq 200); do [ -e /proc/{traced} ] || break; sleep 0.02; done; ls "
                                       "/proc/{traced} 2>&1 | grep -c 'No such'; pgrep -c tracer"));
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("t", "tracer", "1", "lives", "KILL", "4", "1\n0"));
}

TEST_F(ConditionTest, AFrozenCgroupKeepsSignalsButKill) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "entry"
cgroup = "/box"
[[actor]]
name = "worker"
parent = "entry"
state = "frozen"
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "outside"
)",
                                [](Machine& m) {
                                  Lines lines{ask(m,
                                                  "cat /sys/fs/cgroup/box/cgroup.freeze; cat /proc/{worker}/cgroup | "
                                                  "grep ^0::")};
                                  (void)m.send_signal("worker", SIGTERM);
                                  lines.push_back(std::to_string(m.actor("worker")->signal_count));
                                  lines.push_back(exits_within(m, "worker", 100) ? "ended" : "lives");
                                  end(m, "worker", SIGKILL);
                                  lines.push_back(m.actor("worker")->ended_by);
                                  lines.push_back(ask(m, "ps -o stat= -p {worker} | cut -c1"));
                                  lines.push_back(used(m));
                                  end(m, "outside", SIGTERM);
                                  lines.push_back(m.actor("outside")->ended_by);
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre("1\n0::/box", "1", "lives", "KILL", "Z", "4", "TERM"));
}

TEST_F(ConditionTest, ADumpKeepsEverythingOpen) {
  if (!can_dump()) GTEST_SKIP() << "this kernel hands cores to somebody else";
  const Lines seen = observe_in(
      R"(
title = "t"
[[actor]]
name = "parent"
[[actor]]
name = "long"
parent = "parent"
user = "alice"
state = "dumping"
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "brief"
state = "dumping"
stuck = 0.5
holds = [{ gpu = 0, memory = 100 }]
)",
      [](Machine& m) {
        Lines lines{ask(m, "grep CoreDumping /proc/{long}/status | xargs"), nodes_in(m, "/proc/{long}/fd/*"), used(m)};
        lines.push_back(exits_within(m, "brief", 100) ? "at once" : "dumps");
        lines.push_back(exits_within(m, "brief", 5000) ? "then ended" : "for ever");
        lines.push_back(m.actor("brief")->ended_by);
        (void)m.send_signal("long", SIGTERM);
        lines.push_back(exits_within(m, "long", 100) ? "ended" : "dumps");
        end(m, "long", SIGKILL);
        lines.push_back(m.actor("long")->exited ? "ended" : "dumps");
        lines.push_back(used(m));
        return lines;
      });
  EXPECT_THAT(seen, ElementsAre("CoreDumping: 1", "3", "204", "dumps", "then ended", "ABRT", "dumps", "ended", "4"));
}

TEST_F(ConditionTest, WhatCannotBeIsSaid) {
  const auto start = [](const std::string& actor) {
    return observe_in("title = \"t\"\n[[actor]]\nname = \"a\"\n" + actor, [](Machine&) { return Lines{"started"}; });
  };
  EXPECT_THAT(start("state = \"frozen\"\n"), ElementsAre(MatchesRegex("start: .*'a'.*needs a cgroup.*")));
  EXPECT_THAT(start("on_kill = \"stuck\"\n"), ElementsAre(MatchesRegex("start: .*'a'.*on_kill needs an open.*")));
}

}  // namespace
}  // namespace lab
