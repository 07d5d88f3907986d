// SPDX-License-Identifier: Apache-2.0
// The texts of the runner: lines of results, failures, JUnit, and the command line's answers.
#include <gmock/gmock.h>

#include "lab/case/parse.h"
#include "lab/runner/failure_text.h"
#include "lab/runner/junit.h"
#include "lab/runner/options.h"
#include "lab/runner/steps.h"

namespace lab {
namespace {

using ::testing::HasSubstr;

TEST(ResultText, OneLineACase) {
  CaseResult result{"x/a.toml", "a", "the story", Verdict::passed, "", 1.23};
  EXPECT_EQ(result_text(result), "ok   a (1.2 s)  the story\n");
  result.verdict = Verdict::failed;
  result.details = "  step 1\n";
  EXPECT_EQ(result_text(result), "FAIL a (1.2 s)  the story\n  step 1\n");
  result.verdict = Verdict::skipped;
  result.details = "no FUSE";
  EXPECT_EQ(result_text(result), "skip a: no FUSE\n");
}

TEST(SummaryText, NamesSkippedOnlyWhereThereAreAny) {
  CaseResult passed, failed, skipped;
  passed.verdict = Verdict::passed;
  skipped.verdict = Verdict::skipped;
  EXPECT_EQ(summary_text({passed, failed, failed}), "1 passed, 2 failed");
  EXPECT_EQ(summary_text({passed, skipped}), "1 passed, 0 failed, 1 skipped");
}

TEST(FailureText, TellsWhereWhatAndTheOutput) {
  const auto scenario =
      parse_case("title = 't'\n[[step]]\nsleep = 0\n[[step]]\nrun = ['vacate', 'free', \"it's\"]\n", "a.toml");
  ASSERT_TRUE(scenario);
  CommandResult command;
  command.exit_code = 1;
  command.seconds = 0.5;
  command.out = "one\n\x1b[31mtwo\n";
  EXPECT_EQ(failure_text(*scenario, 2, {{}, command, {"exit: expected 0, found 1"}}),
            "  step 2, a.toml:5: vacate free 'it'\\''s'\n"
            "    exit: expected 0, found 1\n"
            "    exit code 1, 0.50 s\n"
            "    standard output:\n"
            "    | one\n"
            "    | \\x1b[31mtwo\n");
}

TEST(QuoteOutput, IsCutAndSaysSo) {
  EXPECT_EQ(quote_output("", "> "), "");
  EXPECT_EQ(quote_output("a\n\nb", "> "), "> a\n> \n> b\n");
  EXPECT_THAT(quote_output(std::string(17000, 'x'), "> "), HasSubstr("> (1000 bytes more)\n"));
}

TEST(Junit, EscapesEverything) {
  const CaseResult result{"a.toml", "a", "<\"&\x1b>", Verdict::failed, "step <1>\n", 1};
  const std::string text = junit_text({result});
  EXPECT_THAT(text, HasSubstr("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""));
  EXPECT_THAT(text, HasSubstr("message=\"&lt;&quot;&amp;\\x1b&gt;\">step &lt;1&gt;"));
}

std::string usage_error(const std::vector<std::string>& arguments) {
  const auto command = parse_command_line(arguments);
  const auto* answer = std::get_if<Answer>(&command);
  if (answer == nullptr || answer->status != 2 || !answer->out.empty()) return "no usage error";
  return answer->err;
}

TEST(CommandLine, UsageErrorsAreOneLine) {
  EXPECT_THAT(usage_error({}), HasSubstr("try 'vacate-lab --help'\n"));
  EXPECT_EQ(usage_error({"demmo", "x"}),
            "vacate-lab: there is no command 'demmo', did you mean 'demo'?; try 'vacate-lab --help'\n");
  EXPECT_THAT(usage_error({"run"}), HasSubstr("try 'vacate-lab run --help'\n"));
  EXPECT_THAT(usage_error({"run", "--jobs", "0", "x"}), HasSubstr("try 'vacate-lab run --help'\n"));
  EXPECT_THAT(usage_error({"run", "--jbos", "1", "x"}), HasSubstr("--jbos"));
}

TEST(CommandLine, HelpGoesToStandardOutput) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"check", "-h"}, {"demo", "--help"}}) {
    const auto command = parse_command_line(arguments);
    const auto* answer = std::get_if<Answer>(&command);
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer->status, 0);
    EXPECT_EQ(answer->err, "");
    EXPECT_THAT(answer->out, HasSubstr("Example"));
  }
}

TEST(CommandLine, ProgramsHaveToBeThere) {
  EXPECT_EQ(usage_error({"run", "a.toml", "--vacate", "/nowhere/vacate"}),
            "vacate-lab: /nowhere/vacate is no program: name the product; try 'vacate-lab run --help'\n");
}

TEST(CommandLine, RunTakesItsOptions) {
  const auto command = parse_command_line({"run", "a.toml", "b.toml", "--jobs", "3", "--keep-going", "--sanitized",
                                           "/bin/sh", "--actor", "/bin/sh", "--nvml", "/bin/sh"});
  const auto* run = std::get_if<RunOptions>(&command);
  ASSERT_NE(run, nullptr);
  EXPECT_THAT(run->files, ::testing::ElementsAre("a.toml", "b.toml"));
  EXPECT_EQ(run->jobs, 3);
  EXPECT_TRUE(run->keep_going);
  EXPECT_EQ(run->settings.paths.vacate, "/bin/sh");
  EXPECT_TRUE(run->settings.steps.sanitized);
  EXPECT_EQ(run->settings.steps.scan, "");
}

TEST(CommandLine, AScanIsForCommandsThatLookAtProcesses) {
  const auto command = parse_command_line(
      {"run", "a.toml", "--scan", "bpf", "--vacate", "/bin/sh", "--actor", "/bin/sh", "--nvml", "/bin/sh"});
  const auto* run = std::get_if<RunOptions>(&command);
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->settings.steps.scan, "bpf");
  using Words = std::vector<std::string>;
  EXPECT_EQ(with_scan({"vacate"}, "bpf"), (Words{"vacate", "--scan", "bpf"}));
  EXPECT_EQ(with_scan({"vacate", "--json"}, "bpf"), (Words{"vacate", "--scan", "bpf", "--json"}));
  EXPECT_EQ(with_scan({"vacate", "free", "--yes"}, "bpf"), (Words{"vacate", "free", "--scan", "bpf", "--yes"}));
  EXPECT_EQ(with_scan({"vacate", "shm", "clean"}, "bpf"), (Words{"vacate", "shm", "clean", "--scan", "bpf"}));
  EXPECT_EQ(with_scan({"vacate", "shm", "--json"}, "bpf"), (Words{"vacate", "shm", "--scan", "bpf", "--json"}));
  EXPECT_EQ(with_scan({"vacate", "run", "--", "true"}, "bpf"), (Words{"vacate", "run", "--scan", "bpf", "--", "true"}));
  for (const Words& other : {Words{"vacate", "log"}, Words{"vacate", "--version"}, Words{"sh", "free"}, Words{}})
    EXPECT_EQ(with_scan(other, "bpf"), other);
  EXPECT_EQ(with_scan({"vacate"}, ""), Words{"vacate"});
}

}  // namespace
}  // namespace lab
