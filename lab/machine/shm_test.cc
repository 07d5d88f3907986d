// SPDX-License-Identifier: Apache-2.0
// [[shm]] in a real machine, looked at with ordinary tools. Needs root and the actor program beside the test program.
#include "lab/machine/shm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/unique_fd.h"
#include "lab/case/parse.h"
#include "lab/machine/machine.h"

namespace lab {
namespace {

using vacate::Deadline;

/// The actor's own references alone: as a shell with a command, so that what is in the machine's /proc can be listed.
constexpr const char* kCase = R"(
title = "t"
[[actor]]
name = "a"
user = "alice"
[[shm]]
name = "psm_{i}"
count = 2
size = 20480
user = "bob"
age = 3600
mapped_by = ["a"]
[[shm]]
name = "open"
size = 0
opened_by = ["a"]
[[shm]]
name = "locked"
locked_by = ["a"]
[[shm]]
name = "kv"
sysv = true
size = 3
user = "alice"
mapped_by = ["a"]
)";

/// What each command prints in a machine of `text`; the body is another process, so it comes back in a file.
std::string outputs_in(const std::string& text, const std::vector<std::string>& commands) {
  const auto scenario = parse_case(text, "test.toml");
  if (!scenario) return scenario.error().message;
  const vacate::UniqueFd seen(memfd_create("seen", MFD_CLOEXEC));
  const std::string actor = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vacate-lab-actor";
  const auto status = run_in_machine(*scenario, {"", actor, "", ""}, [&](Machine& machine) {
    if (const auto started = machine.start_actors(); !started) return 1;
    const auto who = machine.actor("a");
    for (const std::string& command : commands) {
      CommandSpec spec;
      spec.argv = {"/bin/sh", "-c", command, "sh", std::to_string(who->pid)};
      const auto ran = machine.run(spec, Deadline::after(std::chrono::seconds(10)));
      const std::string out = ran ? ran->out + ran->err : ran.error().message;
      if (write(seen.get(), out.data(), out.size()) < 0) return 1;
    }
    return 0;
  });
  if (!status) return status.error().message;
  std::string all(65536, '\0');
  all.resize(static_cast<std::size_t>(std::max<ssize_t>(0, pread(seen.get(), all.data(), all.size(), 0))));
  return all;
}

class ShmInMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a machine is made of namespaces";
  }
};

TEST_F(ShmInMachine, FilesAreAsTheCaseSaysAndSparse) {
  EXPECT_EQ(outputs_in(kCase, {"cd /dev/shm; stat -c '%n %s %b %U' *",
                               "echo $((($(date +%s) - $(stat -c %Y /dev/shm/psm_0)) / 60))"}),
            "locked 1048576 0 root\nopen 0 0 root\npsm_0 21474836480 0 bob\npsm_1 21474836480 0 bob\n60\n");
}

TEST_F(ShmInMachine, UsersUseItInTheWayThatTheCaseSays) {
  EXPECT_EQ(outputs_in(kCase, {"grep -o '/dev/shm/.*' /proc/$1/maps | sort -u",
                               "ls -l /proc/$1/fd | grep -o '/dev/shm/.*' | sort",
                               "grep -c \"FLOCK *ADVISORY *READ *$1 \" /proc/locks"}),
            "/dev/shm/psm_0\n/dev/shm/psm_1\n/dev/shm/locked\n/dev/shm/open\n1\n");
}

TEST_F(ShmInMachine, ASystemVSegmentHasADeadCreatorAndTheCountOfItsUsers) {
  EXPECT_EQ(outputs_in(kCase, {"awk 'NR>1{print $4, $7, $8}' /proc/sysvipc/shm",
                               "ls -d /proc/$(awk 'NR>1{print $5}' /proc/sysvipc/shm) 2>/dev/null"}),
            "3145728 1 1001\n");
}

TEST(ShmPlans, NameOnlyTheActorThatIsMeant) {
  const auto scenario = parse_case(kCase, "test.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto plans = shm_held_by(*scenario, {-1, -1, -1, -1, 7}, "a");
  ASSERT_EQ(plans.size(), 5U);
  EXPECT_EQ(plans[2].use, ShmUse::opened);
  EXPECT_EQ(plans[4].use, ShmUse::attached);
  EXPECT_EQ(plans[4].id, 7U);
  EXPECT_TRUE(shm_held_by(*scenario, {-1, -1, -1, -1, 7}, "b").empty());
}

TEST(ShmPlans, WhatASystemVSegmentCannotHaveIsRefusedByName) {
  for (const std::string entry : {"opened_by = ['a']", "locked_by = ['a']", "age = 5"}) {
    const auto scenario =
        parse_case("title = 't'\n[[actor]]\nname = 'a'\n[[shm]]\nname = 'kv'\nsysv = true\n" + entry, "test.toml");
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_THAT(unsupported(*scenario).value_or(""), ::testing::StartsWith("shm 'kv': ")) << entry;
  }
}

}  // namespace
}  // namespace lab
