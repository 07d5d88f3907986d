// SPDX-License-Identifier: Apache-2.0
#include "os/slurm.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "os/trusted_path.h"

namespace vacate {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Row {
  const char* what;
  int exit_code;
  std::string text;
  Reading<bool> exists;
};

std::string record(const std::string& id, const std::string& rest) { return "JobId=" + id + " " + rest + "\n"; }

TEST(ParseJobAnswer, OnlySlurmsOwnWordEndsAJob) {
  const std::string invalid = "slurm_load_jobs error: Invalid job id specified\n";
  const Row rows[] = {
      {"unknown to the controller", 1, invalid, false},
      {"that text from a program that succeeded", 0, invalid, Unknown::failed},
      {"that text within another", 1, "x " + invalid, Unknown::failed},
      {"ended by a signal", -1, invalid, Unknown::failed},
      {"no controller", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
       Unknown::failed},
      {"no configuration", 1, "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error\n", Unknown::failed},
      {"silence", 0, "", Unknown::failed},
      {"running", 0, record("55", "JobName=a UserId=al(1001) JobState=RUNNING Reason=None"), true},
      {"completing", 0, record("55", "JobName=a JobState=COMPLETING Reason=None"), true},
      {"cancelled", 0, record("55", "JobName=a JobState=CANCELLED Reason=None"), false},
      {"out of memory", 0, record("55", "JobName=a JobState=OUT_OF_MEMORY Reason=x"), false},
      {"waits for a second run", 0, record("55", "JobName=a JobState=PENDING Reason=x"), Unknown::not_supported},
      {"a state of a later version", 0, record("55", "JobName=a JobState=DREAMING Reason=x"), Unknown::not_supported},
      {"another job", 0, record("5", "JobName=a JobState=FAILED"), Unknown::failed},
      {"tasks of an array, not the one asked for", 0, record("56", "ArrayJobId=55 JobName=a JobState=FAILED"),
       Unknown::failed},
      {"among tasks of an array", 0,
       record("56", "ArrayJobId=55 JobName=a JobState=FAILED") + record("55", "ArrayJobId=55 JobState=RUNNING"), true},
      {"a name that holds a state", 0, record("55", "JobName=a JobState=FAILED JobState=RUNNING"),
       Unknown::implausible},
      {"a name that holds a record", 0, record("55", "JobName=a\nJobId=55 JobState=FAILED x JobState=RUNNING"),
       Unknown::implausible},
      {"bytes", 0, std::string("JobId=55 \0\xff\n=\n = \n", 18), Unknown::implausible},
      {"a record from a program that failed", 1, record("55", "JobState=FAILED"), Unknown::failed},
  };
  for (const auto& row : rows) EXPECT_EQ(parse_job_answer("55", {row.exit_code, row.text}), row.exists) << row.what;
}

TEST(RunTrustedProgram, GivesBothStreamsAndTheCode) {
  const auto output = run_trusted_program({"/nowhere", "/usr/bin/env"},
                                          {"bash", "-c", "echo a; echo b >&2; env; exit 3"}, Deadline::after(5s));
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->exit_code, 3);
  EXPECT_THAT(output->text, HasSubstr("a\nb\n"));
  EXPECT_EQ(output->text.find("HOME="), std::string::npos) << output->text;
}

TEST(RunTrustedProgram, GivesUpOnOneThatDoesNotEnd) {
  const auto start = std::chrono::steady_clock::now();
  const auto output = run_trusted_program({"/usr/bin/sleep"}, {"60"}, Deadline::after(200ms));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(RunTrustedProgram, RunsNothingThatOthersCouldHaveMade) {
  char name[] = "/tmp/vacate-program-XXXXXX";
  const std::string folder = mkdtemp(name);
  const std::string program = folder + "/tool";
  std::filesystem::copy("/usr/bin/true", program);
  const auto output = run_trusted_program({program}, {}, Deadline::after(5s));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::refused);
  const auto missing = run_trusted_program({"/nowhere", "/usr/nowhere"}, {}, Deadline::after(5s));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::gone);
  std::filesystem::remove_all(folder);
}

TEST(TrustedPath, FollowsNoLinkAndTrustsNoFolderOfOthers) {
  EXPECT_TRUE(open_trusted_directory("/usr/bin"));
  EXPECT_TRUE(open_trusted_directory("/"));
  EXPECT_EQ(open_trusted_directory("/tmp").error().code, ErrorCode::refused);
  EXPECT_EQ(open_trusted_directory("/proc/self/cwd").error().code, ErrorCode::refused);
  EXPECT_EQ(open_trusted_directory("/nowhere/x").error().code, ErrorCode::gone);
  EXPECT_EQ(open_trusted_directory("usr").error().code, ErrorCode::bug);
  EXPECT_EQ(check_trusted_program("/etc/passwd").error().code, ErrorCode::refused);
  EXPECT_EQ(check_trusted_program("/usr/bin").error().code, ErrorCode::refused);
  EXPECT_TRUE(check_trusted_program("/usr/bin/env"));
}

TEST(JudgeJobs, WithoutSlurmEverythingIsUnknown) {
  if (access("/usr/bin/scontrol", F_OK) == 0) GTEST_SKIP() << "this machine has Slurm";
  const auto answers = ask_slurm({"1", "2"}, Deadline::after(2s));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].exists, Reading<bool>(Unknown::not_supported));
  EXPECT_EQ(answers[1].exists, Reading<bool>(Unknown::not_supported));
}

}  // namespace
}  // namespace vacate
