// SPDX-License-Identifier: Apache-2.0
// Small machines, looked at from the inside with ordinary tools: is everything as the case says, and is nothing left of
// it afterwards? Needs root and the actor program beside the test program.
#include "lab/machine/machine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "lab/case/parse.h"
#include "lab/machine/files.h"
#include "lab/machine/test_machine.h"

namespace lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using vacate::Deadline;

constexpr const char* kTree = R"(
title = "t"
[[actor]]
name = "server"
argv = ["python3", "serve.py"]
[[actor]]
name = "engine"
parent = "server"
title = "VLLM::EngineCore with a name too long for comm"
[[actor]]
name = "worker"
parent = "engine"
group = true
[[actor]]
name = "lone"
parent = "engine"
detached = true
[[actor]]
name = "daemon"
parent = "init"
user = "alice"
exe = "/usr/lib/xorg/Xorg"
argv = ["/usr/lib/xorg/Xorg", "vt2"]
)";

TEST_F(MachineTest, RelationsFollowTheRulesOfTheFormat) {
  const Lines seen = observe_in(kTree, [](Machine& m) {
    const auto expect = [&](const std::string& name, const std::string& ppid, const std::string& group,
                            const std::string& session) {
      return relations(m, name) == fmt::format("{} {} {}", ppid, group, session) ? "as wished" : relations(m, name);
    };
    const std::string shell = pid_of(m, "shell");
    const std::string server = pid_of(m, "server");
    return Lines{
        expect("shell", "1", shell, shell),      expect("server", shell, server, shell),
        expect("engine", server, server, shell), expect("worker", pid_of(m, "engine"), pid_of(m, "worker"), shell),
        expect("lone", "1", server, shell),      expect("daemon", "1", pid_of(m, "daemon"), pid_of(m, "daemon"))};
  });
  EXPECT_THAT(seen, ElementsAre("as wished", "as wished", "as wished", "as wished", "as wished", "as wished"));
}

TEST_F(MachineTest, NamesAndProgramsAreThoseOfTheCase) {
  const Lines seen = observe_in(kTree, [](Machine& m) {
    return Lines{ask(m, "cat /proc/{server}/comm; tr '\\0' '|' </proc/{server}/cmdline"),
                 ask(m, "cat /proc/{engine}/comm; tr '\\0' '|' </proc/{engine}/cmdline"),
                 ask(m, "cat /proc/{daemon}/comm; tr '\\0' '|' </proc/{daemon}/cmdline; readlink /proc/{daemon}/exe"),
                 ask(m, "cat /proc/{shell}/comm; readlink /proc/{shell}/exe"),
                 ask(m, "stat -c %U /proc/{daemon}; tr '\\0' ' ' </proc/{daemon}/environ"),
                 ask(m, "cat /proc/2/comm; ps -o ppid=,uid= -p 2 | xargs; cat /proc/2/cmdline"),
                 ask(m, "test -s /usr/lib/xorg/Xorg && echo real || echo empty")};
  });
  EXPECT_THAT(seen, ElementsAre("python3\npython3|serve.py|",
                                "VLLM::EngineCor\nVLLM::EngineCore with a name too long for comm|",
                                "Xorg\n/usr/lib/xorg/Xorg|vt2|/usr/lib/xorg/Xorg", "-bash\n/usr/bin/bash",
                                "alice\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "
                                "HOME=/home/alice USER=alice LANG=C.UTF-8",
                                "kthreadd\n0 0", ::testing::AnyOf("empty", "real")));
}

TEST_F(MachineTest, ActorsHoldExactlyTheDescriptorsOfTheCase) {
  const Lines seen = observe_in(R"(
title = "t"
machine = { gpus = 2, minors = [1, 0] }
[[actor]]
name = "main"
holds = [{ gpu = 0, memory = 100 }]
[[actor]]
name = "fork{i}"
count = 2
parent = "main"
holds = [{ how = "inherited", from = "main" }]
[[actor]]
name = "part"
parent = "main"
holds = [{ how = "inherited", from = "main", nodes = ["gpu0"], count = 3 }]
[[actor]]
name = "plain"
parent = "main"
listen = 8000
[[actor]]
name = "mapper"
parent = "main"
holds = [{ how = "mapped", from = "main" }]
[[actor]]
name = "path"
holds = [{ gpu = 1, how = "path-only" }]
)",
                                [](Machine& m) {
                                  return Lines{descriptors(m, "main"),
                                               descriptors(m, "fork0"),
                                               descriptors(m, "fork1"),
                                               descriptors(m, "part"),
                                               descriptors(m, "plain"),
                                               descriptors(m, "mapper"),
                                               ask(m, "grep -c /dev/nvidia1 /proc/{mapper}/maps"),
                                               descriptors(m, "path")};
                                });
  const std::string null = "/dev/null /dev/null /dev/null";
  EXPECT_THAT(seen, ElementsAre(null + " /dev/nvidia-uvm /dev/nvidia1 /dev/nvidiactl pipe: pipe: pipe: pipe: pipe:",
                                null + " /dev/nvidia-uvm /dev/nvidia1 /dev/nvidiactl pipe:",
                                null + " /dev/nvidia-uvm /dev/nvidia1 /dev/nvidiactl pipe:",
                                null + " /dev/nvidia1 /dev/nvidia1 /dev/nvidia1 pipe:", null + " pipe: socket:",
                                null + " pipe:", "1", null + " /dev/nvidia0"));
}

TEST_F(MachineTest, OnlyTheParentHasTheOtherEndOfABirthPipe) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "main"
[[actor]]
name = "c{i}"
count = 3
parent = "main"
holds = [{ how = "inherited", from = "main" }]
)",
                 [](Machine& m) {
                   return Lines{ask(m,
                                    "for c in {c0} {c1} {c2}; do p=$(readlink /proc/$c/fd/* | grep pipe); "
                                    "for q in {main} {c0} {c1} {c2}; do for f in /proc/$q/fd/*; do "
                                    "[ \"$(readlink $f)\" = \"$p\" ] && echo $q; done; done; done | sort | uniq -c "
                                    "| awk '{print $1}' | xargs"),
                                ask(m, "grep -h flags /proc/{c1}/fdinfo/* | grep -c 02000000")};
                 });
  EXPECT_THAT(seen, ElementsAre("3 1 1 1", "1"));
}

TEST_F(MachineTest, AnInheritorKeepsTheMemoryOfADeadParent) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "main"
holds = [{ gpu = 0, memory = 500 }]
[[actor]]
name = "loader"
parent = "main"
holds = [{ how = "inherited", from = "main" }]
)",
                                [](Machine& m) {
                                  Lines lines{used(m)};
                                  end(m, "main", SIGKILL);
                                  lines.push_back(used(m));
                                  lines.push_back(m.actor("main")->ended_by);
                                  lines.push_back(ask(m, "ps -o ppid= -p {loader} | xargs"));
                                  end(m, "loader", SIGTERM);
                                  lines.push_back(m.actor("loader")->ended_by);
                                  lines.push_back(used(m));
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre("504", "504", "KILL", "1", "TERM", "4"));
}

TEST_F(MachineTest, AZombieLeaderLivesOnInItsThread) {
  const Lines seen = observe_in(R"(
title = "t"
[[actor]]
name = "main"
holds = [{ gpu = 0, memory = 500 }]
[[actor]]
name = "worker"
parent = "main"
state = "zombie-leader"
holds = [{ how = "inherited", from = "main" }]
)",
                                [](Machine& m) {
                                  Lines lines{ask(m, "ps -o stat= -p {worker}; ls /proc/{worker}/task | wc -l")};
                                  lines.push_back(m.actor("worker")->exited ? "exited" : "lives");
                                  end(m, "main", SIGKILL);
                                  lines.push_back(used(m));
                                  end(m, "worker", SIGTERM);
                                  lines.push_back(m.actor("worker")->ended_by);
                                  lines.push_back(used(m));
                                  return lines;
                                });
  EXPECT_THAT(seen, ElementsAre(MatchesRegex("Zl?\n2"), "lives", "504", "TERM", "4"));
}

TEST_F(MachineTest, FinalStatesAreTaken) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "parent"
[[actor]]
name = "dead"
parent = "parent"
state = "zombie"
[[actor]]
name = "child"
parent = "dead"
[[actor]]
name = "halted"
state = "stopped"
[[actor]]
name = "busy"
state = "spinning"
)",
                 [](Machine& m) {
                   Lines lines{ask(m, "for p in {dead} {halted}; do ps -o stat= -p $p | cut -c1; done | xargs"),
                               ask(m, "ps -o ppid= -p {child} | xargs")};
                   lines.push_back(m.actor("dead")->exited ? m.actor("dead")->ended_by : "lives");
                   (void)m.send_signal("halted", SIGTERM);
                   lines.push_back(std::to_string(m.actor("halted")->signals[SIGTERM]));
                   end(m, "halted", SIGCONT);
                   lines.push_back(m.actor("halted")->ended_by);
                   end(m, "busy", SIGTERM);
                   lines.push_back(m.actor("busy")->ended_by);
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("Z T", "1", "exit", "1", "TERM", "TERM"));
}

TEST_F(MachineTest, SignalsAreTakenAsTheCaseSaysAndCounted) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "deaf"
on_term = "ignore"
[[actor]]
name = "late"
on_term = "slow"
slow = 0.3
[[actor]]
name = "hydra"
on_term = "fork"
[[actor]]
name = "head"
[[actor]]
name = "tail"
parent = "head"
on_parent_exit = "exit"
)",
                 [](Machine& m) {
                   for (const int sig : {SIGTERM, SIGINT, SIGTERM}) (void)m.send_signal("deaf", sig);
                   Lines lines{std::to_string(m.actor("deaf")->signal_count)};
                   lines.push_back(m.actor("deaf")->exited ? "exited" : "lives");
                   end(m, "late", SIGTERM);
                   lines.push_back(m.actor("late")->ended_by);
                   end(m, "head", SIGTERM);
                   (void)m.wait_exit("tail", Deadline::after(std::chrono::seconds(5)));
                   lines.push_back(fmt::format("{} {}", m.actor("tail")->ended_by, m.actor("tail")->signal_count));
                   (void)m.send_signal("hydra", SIGTERM);
                   for (int i = 0; i < 1000 && m.expand("hydra*")->size() < 2; ++i) usleep(1000);
                   lines.push_back(fmt::format("{}", fmt::join(*m.expand("hydra*"), " ")));
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("3", "lives", "TERM", "exit 0", "hydra hydra+1"));
}

TEST_F(MachineTest, CommandsAreJobsOfTheShellUnlessSomebodyElseStartsThem) {
  const Lines seen =
      observe_in(R"(
title = "t"
[[actor]]
name = "agent"
parent = "init"
env = { TOKEN = "abc" }
)",
                 [](Machine& m) {
                   Lines lines;
                   CommandSpec spec;
                   spec.argv = {"bash", "-c", "ps -o ppid=,pgid=,tty= -p $$ | xargs; echo $TOKEN; exit 3"};
                   spec.child_of = "agent";
                   const auto result = m.run(spec, Deadline::after(std::chrono::seconds(10)));
                   const std::string agent = pid_of(m, "agent");
                   lines.push_back(result->out == fmt::format("{0} {0} ?\nabc\n", agent) ? "as wished" : result->out);
                   lines.push_back(std::to_string(result->exit_code));
                   spec = {};
                   spec.argv = {"bash", "-c", "ps -o tpgid= -p $$ | xargs; echo $$; tty; read x; echo got $x"};
                   spec.tty = true;
                   spec.stdin_text = "word\n";
                   const auto on_tty = m.run(spec, Deadline::after(std::chrono::seconds(10)));
                   lines.push_back(on_tty->out);
                   lines.push_back(ask(m, "id -un; echo $HOME", "bob"));
                   spec = {};
                   spec.argv = {"sleep", "60"};
                   const auto killed = m.run(spec, Deadline::after(std::chrono::milliseconds(50)));
                   lines.push_back(fmt::format("{} {}", killed->timed_out, killed->signal));
                   lines.push_back(m.actor("shell")->exited ? "shell ended" : "shell lives");
                   return lines;
                 });
  EXPECT_THAT(seen, ElementsAre("as wished", "3", ::testing::AllOf(HasSubstr("/dev/pts/"), HasSubstr("got word")),
                                "bob\n/home/bob", "true 9", "shell lives"));
}

/// The exit code of the machine's shell when `input` is all that it is given, by a pipe.
std::string shell_given(Machine& machine, std::string_view input) {
  std::array<int, 2> ends{};
  const vacate::UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (pipe(ends.data()) != 0 || write(ends[1], input.data(), input.size()) < 0) return "no pipe";
  (void)dup2(ends[0], STDIN_FILENO);
  (void)dup2(nowhere.get(), STDOUT_FILENO);
  (void)close(ends[0]);
  (void)close(ends[1]);
  const auto code = machine.shell();
  return code ? std::to_string(*code) : code.error().message;
}

TEST_F(MachineTest, AShellEndsWithItsInput) {
  const Lines seen = observe_in(kTree, [](Machine& m) {
    (void)std::signal(SIGALRM, [](int) { _exit(1); });  // rather than to wait for ever
    (void)alarm(30);
    return Lines{shell_given(m, ""), shell_given(m, "true\n"), shell_given(m, "exit 5"), shell_given(m, "cat\nx\n")};
  });
  EXPECT_THAT(seen, ElementsAre("0", "0", "5", "0"));
}

/// Everything that is mounted in a machine with one GPU. Nothing of the host but its devices and our own programs.
constexpr const char* kMounts =
    "/ /dev /dev/full /dev/null /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0 /dev/nvidiactl /dev/pts /dev/random "
    "/dev/shm /dev/tty /dev/urandom /dev/zero /etc/vacate /proc /proc/driver /run /run/lab/driver /sys /sys/fs/cgroup "
    "/tmp "
    "/usr/local/lib/vacate-lab/actor /var";

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST_F(MachineTest, NothingIsLeftAndTheHostIsOutOfReach) {
  const auto shm = names_in("/dev/shm");
  const Lines seen = observe_in(kTree, [](Machine& m) {
    return Lines{ask(m, "touch /dev/shm/x /tmp/x /root/vacate-lab-was-here; ls /dev/shm /run | xargs"),
                 ask(m, "cat /proc/self/cgroup | grep ^0::"),
                 ask(m, "awk '{print $5}' /proc/self/mountinfo | LC_ALL=C sort | xargs"),
                 ask(m, "echo >/usr/local/lib/vacate-lab/actor"), ask(m, "cat /sys/class/net/*/ifindex | wc -l")};
  });
  EXPECT_THAT(seen, ElementsAre("/dev/shm: x /run: lab lock", "0::/", kMounts, HasSubstr("Read-only"), "1"));
  EXPECT_EQ(shm, names_in("/dev/shm"));
  EXPECT_FALSE(std::filesystem::exists("/root/vacate-lab-was-here"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  for (const std::string mine : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}) {
    EXPECT_FALSE(std::filesystem::exists(fmt::format("{}/vacate-lab.{}", mine, getpid())));
  }
}

/// What a program in the machine finds behind the library's name: its version, and which of the calls that came and
/// went between the eras it exports (facts.md 1.6). The body is in the machine, so it may look itself.
std::string library_in_machine() {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  std::array<char, 80> version{};
  using GetVersion = int (*)(char*, unsigned);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(library, "nvmlSystemGetNVMLVersion"));
  if (get_version == nullptr || get_version(version.data(), version.size()) != 0) return "no version";
  std::string found = version.data();
  for (const char* name : {"ComputeRunningProcesses_v2", "ComputeRunningProcesses_v3", "MemoryInfo_v2",
                           "ConfComputeMemSizeInfo", "RunningProcessDetailList"}) {
    if (dlsym(library, fmt::format("nvmlDeviceGet{}", name).c_str()) != nullptr) found += fmt::format(" {}", name);
  }
  return found;
}

TEST_F(MachineTest, TheVendorsLibraryIsThatOfTheEra) {
  const auto seen = [](const char* era) {
    return observe_in(
        fmt::format("title = \"t\"\n[driver]\nera = \"{}\"\n", era),
        [](Machine& m) {
          return Lines{library_in_machine(), ask(m, "ls /usr/lib*/*/libnvidia-ml.so.1 | wc -l")};
        },
        eras_folder());
  };
  constexpr const char* kOld = " ComputeRunningProcesses_v2";
  const std::string v3 = std::string(kOld) + " ComputeRunningProcesses_v3";
  EXPECT_THAT(seen("470"), ElementsAre(std::string("11.470.82.01") + kOld, "1"));
  EXPECT_THAT(seen("510"), ElementsAre("11.510.108.03" + v3 + " MemoryInfo_v2", "1"));
  EXPECT_THAT(seen("535.86"), ElementsAre("12.535.86.10" + v3 + " MemoryInfo_v2 ConfComputeMemSizeInfo", "1"));
  EXPECT_THAT(seen("535.98"),
              ElementsAre(std::string("12.535.98") + kOld + " MemoryInfo_v2 ConfComputeMemSizeInfo", "1"));
  EXPECT_THAT(seen("535.104"), ElementsAre("12.535.104.05" + v3 + " MemoryInfo_v2 ConfComputeMemSizeInfo", "1"));
  const std::string today = v3 + " MemoryInfo_v2 ConfComputeMemSizeInfo RunningProcessDetailList";
  EXPECT_THAT(seen("550"), ElementsAre("12.550.54.15" + today, "1"));
  EXPECT_THAT(seen("580"), ElementsAre("13.580.95.05" + today, "1"));
}

TEST(UnsupportedTest, NamesTheActorAndThePart) {
  const auto scenario = parse_case(
      "title = \"t\"\n[[actor]]\nname = \"a\"\n[[actor]]\nname = \"b\"\nparent = \"a\"\nrespawn = [\"c\"]\n"
      "[[actor]]\nname = \"c\"\nparent = \"b\"\nstate = \"stopped\"\n",
      "test.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(unsupported(*scenario), "actor 'b': respawn of 'c', which has a state");
  const auto status = run_in_machine(*scenario, {}, [](Machine&) { return 0; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, vacate::ErrorCode::unsupported);
}

}  // namespace
}  // namespace lab
