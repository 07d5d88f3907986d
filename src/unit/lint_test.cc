// SPDX-License-Identifier: Apache-2.0
// A row a rule: the text that has to be found, and the one like it that is right and has to stay unmentioned.
#include "unit/lint.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "model/unit_lint.h"

namespace vacate {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

UnitToLint unit_of(const std::string& service) {
  UnitToLint unit;
  unit.settings = UnitSettings::parse({{"/etc/systemd/system/a.service", "[Service]\n" + service}});
  return unit;
}

std::vector<UnitFinding> found(const std::string& service) { return lint_unit(unit_of(service)); }

/// Codes of errors and warnings.
std::vector<std::string> codes(const UnitToLint& unit) {
  std::vector<std::string> all;
  for (const auto& finding : lint_unit(unit))
    if (finding.severity != UnitSeverity::hint) all.push_back(finding.code);
  return all;
}
std::vector<std::string> codes(const std::string& service) { return codes(unit_of(service)); }

struct LintRow {
  std::string text;
  std::string code;  ///< empty: nothing is to be found
};

void check(const std::vector<LintRow>& rows) {
  for (const auto& [text, code] : rows) {
    if (code.empty())
      EXPECT_THAT(codes(text), IsEmpty()) << text;
    else
      EXPECT_THAT(codes(text), ElementsAre(code)) << text;
  }
}

// Each form ran under systemd 252, which printed what was left of it.
TEST(Lint, FindsWhatSystemdTakesOutOfCommands) {
  check({{"ExecStart=/bin/echo ${FOO}\n", "undefined-variable"},
         {"ExecStart=/bin/echo a${FOO}b\n", "undefined-variable"},
         {"ExecStart=/bin/echo \"${FOO}\"\n", "undefined-variable"},
         {"ExecStart=/bin/echo '${FOO}'\n", "undefined-variable"},
         {"ExecStart=/bin/echo $FOO\n", "undefined-variable"},
         {"ExecStart=/bin/echo '$FOO'\n", "undefined-variable"},
         {"ExecStart=/bin/echo \\x24FOO\n", "undefined-variable"},
         {"ExecStart=/bin/echo \"${FOO:-${BAR}}\"\n", "undefined-variable"},
         {"ExecStart=/bin/echo $HOME\n", "undefined-variable"},
         {"User=llm\nExecStart=/bin/echo $HOME $PATH ${INVOCATION_ID}\n", ""},
         {"ExecStart=/bin/echo $FOO/bar\n", "shell-form"},
         {"ExecStart=/bin/echo $(date)\n", "shell-form"},
         {"ExecStart=/bin/echo $\n", "shell-form"},
         {"ExecStart=/bin/echo $1\n", "shell-form"},
         {"ExecStart=/bin/echo ${#FOO}\n", "shell-form"},
         {"ExecStart=/bin/echo ${FOO/a/b}\n", "shell-form"},
         {"ExecStart=/bin/sh -c '$cmd --flag'\n", "shell-form"},
         {"ExecStart=${BIN}/serve\n", "variable-program"},
         {"ExecStart=/bin/sh -c 'echo $FOO $(date) $1'\n", ""},
         {"ExecStart=/bin/sh -c 'echo ${FOO:-default}'\n", ""},
         {"ExecStart=/bin/echo x$FOO\n", ""},
         {"ExecStart=/bin/echo $$FOO $${FOO} $$(date) ${ $${\n", ""},
         {"ExecStart=:/bin/echo $FOO ${FOO}\n", ""},
         {"ExecStart=/bin/echo ${\n", ""},
         {"Environment=FOO=1 \"BAR=a b\"\nExecStart=/bin/echo $FOO ${BAR}\n", ""},
         {"Environment=FOO=1\nEnvironment=\nExecStart=/bin/echo $FOO\n", "undefined-variable"},
         {"PassEnvironment=FOO\nExecStart=/bin/echo $FOO\n", ""},
         {"ExecReload=/bin/kill -HUP $MAINPID\n", ""},
         {"Environment=FOO=${BAR}\nExecStart=/bin/a\n", "variable-not-replaced"},
         {"Environment=PS1=$\nExecStart=/bin/a\n", ""}});
}

TEST(Lint, AScriptsOwnVariableIsNoneOfTheUnits) {
  const auto all =
      found("Environment=free=1\nExecStartPre=/bin/sh -c 'free=$(a); test ${free} -gt 1'\nExecStart=/bin/a\n");
  ASSERT_THAT(all, Not(IsEmpty()));
  EXPECT_EQ(all.front().code, "undefined-variable");
  EXPECT_THAT(all.front().fix, HasSubstr("$${free}"));
}

TEST(Lint, EnvironmentFilesDefine) {
  auto unit = unit_of("EnvironmentFile=-/etc/llm.env\nExecStart=/bin/echo ${MODEL} ${OTHER}\n");
  EXPECT_THAT(environment_files_of(unit.settings), ElementsAre("/etc/llm.env"));
  unit.environment_files = {{"/etc/llm.env", "# c\nMODEL = a\n"}};
  EXPECT_THAT(codes(unit), ElementsAre("undefined-variable"));
  unit.environment_files.clear();
  unit.unread_environment = {"/etc/llm.env"};
  EXPECT_THAT(codes(unit), IsEmpty());  // it may be in there: hints
  EXPECT_EQ(lint_unit(unit).size(), 2U);
}

TEST(Lint, FindsPercentSigns) {
  check({{"ExecStart=/bin/echo %3d\n", "unknown-specifier"},
         {"ExecStart=/bin/echo %z\n", "unknown-specifier"},
         {"Environment=A=%k\nExecStart=/bin/a\n", "unknown-specifier"},
         {"ExecStart=/bin/sh -c 'date +%s'\n", "percent-in-format"},
         {"ExecStart=/bin/sh -c 'printf \"%s\" a'\n", "percent-in-format"},
         {"ExecStart=/bin/sh -c 'date +%%s; printf \"%%s\" a'\n", ""},
         {"ExecStart=/bin/sh -c 'date; echo %n'\n", ""},
         {"ExecStart=/bin/echo %n %i %H %t/x %%d 50%\n", ""},
         {"ExecStart=/opt/update %i\n", ""},
         {"MemoryMax=80%\nExecStart=/bin/a\n", ""}});
}

TEST(Lint, FindsWaitsInAShell) {
  check({{"ExecStartPre=/bin/sh -c 'while nvidia-smi | grep -q python; do sleep 1; done'\nExecStart=/bin/a\n",
          "wait-in-shell"},
         {"ExecStartPre=/bin/bash -c 'until curl -f http://x; do sleep 1; done'\nExecStart=/bin/a\n", "wait-in-shell"},
         {"ExecStart=/bin/sh -c 'until [ -z \"$(fuser /dev/nvidia0)\" ]; do sleep 1; done; exec serve'\n",
          "wait-in-shell"},
         {"ExecStart=/bin/sh -c 'while true; do work; sleep 60; done'\n", ""},
         {"ExecStartPre=/bin/sh -c 'while read -r x; do echo x; done < /etc/x'\nExecStart=/bin/a\n", ""},
         {"ExecStartPre=/opt/while sleep\nExecStart=/bin/a\n", ""}});
}

TEST(Lint, FindsKillsByNameAndRemovals) {
  check({{"ExecStartPre=-/usr/bin/pkill -9 -f vllm\nExecStart=/bin/a\n", "kill-by-name"},
         {"ExecStopPost=/bin/sh -c 'killall python3'\nExecStart=/bin/a\n", "kill-by-name"},
         {"ExecStartPre=/bin/sh -c 'fuser -k /dev/nvidia0'\nExecStart=/bin/a\n", "kill-by-name"},
         {"ExecStop=/bin/sh -c 'kill -9 $(pgrep -f vllm)'\nExecStart=/bin/a\n", "kill-by-name"},
         {"ExecStop=/bin/kill -TERM $MAINPID\nExecStart=/bin/a\n", ""},
         {"ExecStop=/usr/bin/pkill -P $MAINPID\nExecStart=/bin/a\n", ""},
         {"ExecStartPre=/bin/sh -c 'rm -f /dev/shm/psm_*'\nExecStart=/bin/a\n", "shm-removal"},
         {"ExecStartPre=/usr/bin/find /dev/shm -name 'x*' -delete\nExecStart=/bin/a\n", "shm-removal"},
         {"ExecStartPre=/usr/bin/find /dev/shm\nExecStart=/bin/a\n", ""},
         {"ExecStartPre=/bin/rm -f /run/x\nExecStart=/bin/a\n", ""},
         {"ExecStartPre=/usr/bin/nvidia-smi --gpu-reset -i 0\nExecStart=/bin/a\n", "gpu-reset"}});
}

TEST(Lint, KnowsWhatALineOfVacateNeeds) {
  check({{"User=llm\nNotifyAccess=exec\nExecStartPre=/usr/bin/vacate wait\nExecStart=/bin/a\n", "needs-root"},
         {"User=llm\nNotifyAccess=exec\nExecStartPre=+/usr/bin/vacate wait\nExecStart=/bin/a\n", ""},
         {"DynamicUser=yes\nNotifyAccess=exec\nExecStartPre=/usr/bin/vacate wait\nExecStart=/bin/a\n", "needs-root"},
         {"User=root\nNotifyAccess=exec\nExecStartPre=!/usr/bin/vacate wait\nExecStart=/bin/a\n", ""},
         {"ExecStartPre=/usr/bin/vacate wait\nExecStart=/bin/a\n", "start-timeout"},  // five minutes by itself
         {"ExecStartPre=/usr/bin/vacate wait --timeout 1min\nExecStart=/bin/a\n", ""},
         {"TimeoutStartSec=6min\nExecStartPre=/usr/bin/vacate wait --timeout=5min\nExecStart=/bin/a\n", ""},
         {"Type=notify\nExecStartPre=/usr/bin/vacate wait\nExecStart=/bin/a\n", "start-timeout"},  // main is not enough
         {"NotifyAccess=all\nExecStartPre=/usr/bin/vacate wait --timeout 0\nExecStart=/bin/a\n", ""},
         {"TimeoutStartSec=1h\nExecStartPre=/usr/bin/vacate wait --timeout 0\nExecStart=/bin/a\n", "start-timeout"},
         {"NotifyAccess=exec\nExecStartPre=-/usr/bin/vacate wait\nExecStart=/bin/a\n", "ignored-wait"},
         {"User=llm\nExecStopPost=+/usr/bin/vacate free --unit a --all --yes\nExecStart=/bin/a\n", "needs-user"},
         {"User=llm\nExecStopPost=!/usr/bin/vacate free --unsure --yes\nExecStart=/bin/a\n", "needs-user"},
         {"DynamicUser=1\nExecStopPost=+/usr/bin/vacate free --unit a --all --yes\nExecStart=/bin/a\n", "needs-user"},
         {"User=llm\nExecStopPost=+/usr/bin/vacate free --all --user llm,root --yes\nExecStart=/bin/a\n", ""},
         {"User=llm\nExecStopPost=+/usr/bin/vacate free --all --user=llm --yes\nExecStart=/bin/a\n", ""},
         {"User=llm\nExecStopPost=+/usr/bin/vacate free --unit a --yes\nExecStart=/bin/a\n", ""},
         {"User=0\nExecStopPost=/usr/bin/vacate free --unit a --all --yes\nExecStart=/bin/a\n", ""},
         {"ExecStopPost=/usr/bin/vacate free --unit a\nExecStart=/bin/a\n", "no-consent"},
         {"ExecStopPost=/usr/bin/vacate free --unit a --yes --timeout 2min\nExecStart=/bin/a\n", "stop-timeout"},
         {"TimeoutStopSec=3min\nExecStopPost=/usr/bin/vacate free --yes --timeout 2min\nExecStart=/bin/a\n", ""},
         {"ExecStart=/usr/bin/vacate run -- /opt/serve\n", "no-delegate"},
         {"Delegate=yes\nExecStart=/usr/bin/vacate run -- /opt/serve\n", ""},
         {"Delegate=pids\nExecStart=/usr/bin/vacate run -- /opt/serve\n", ""},
         {"ExecStartPre=/usr/bin/vacate status\nExecStart=/bin/a\n", ""}});
}

TEST(Lint, JudgesHowAServiceIsStoppedAndStartedAgain) {
  check({{"KillMode=process\nExecStart=/bin/a\n", "kill-mode"},
         {"KillMode=none\nExecStart=/bin/a\n", "kill-mode"},
         {"KillMode=mixed\nExecStart=/bin/a\n", ""},
         {"KillMode=process\nStandardInput=tty\nExecStart=/bin/a\n", ""},
         {"KillMode=process\nType=oneshot\nExecStart=/bin/a\n", ""},
         {"KillMode=process\nType=oneshot\nExecStart=/bin/vllm\n", "kill-mode"},
         {"Restart=always\nRestartSec=10\nExecStart=/opt/vllm\n", "restart-without-limit"},
         {"Restart=always\nExecStart=/opt/vllm\n", ""},
         {"Restart=on-failure\nRestartSec=10\nExecStart=/opt/vllm\n", ""},
         {"Restart=always\nRestartSec=10\n[Unit]\nStartLimitIntervalSec=30min\n[Service]\nExecStart=/opt/vllm\n", ""},
         {"Restart=always\nRestartSec=1\n[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/opt/vllm\n",
          "restart-without-limit"}});
  auto hub = unit_of("KillMode=process\nExecStart=/bin/a\n");
  hub.work = UnitWork::of_others;
  EXPECT_THAT(codes(hub), IsEmpty());
}

TEST(Lint, HintsChangeNoExitCode) {
  UnitLint lint;
  lint.findings = found("ExecStart=/opt/vllm serve\nRestart=always\n");
  std::vector<std::string> hints;
  for (const auto& finding : lint.findings) hints.push_back(finding.code);
  EXPECT_THAT(hints, ElementsAre("reset-failed", "no-clean-up", "type-hides-readiness"));
  EXPECT_EQ(exit_code_of(lint), ExitCode::done);
  lint.findings.push_back({UnitSeverity::warning, "x", "", 0, "", "", ""});
  EXPECT_EQ(exit_code_of(lint), ExitCode::holders_remain);
}

TEST(Lint, NamesFileAndLineInTheOrderOfReading) {
  UnitToLint unit;
  unit.settings =
      UnitSettings::parse({{"/usr/lib/systemd/system/z.service", "[Service]\n\nExecStart=/bin/a 'b\n"},
                           {"/etc/systemd/system/z.service.d/a.conf", "[Service]\nKillMode=none\nnonsense\n"}});
  const auto all = lint_unit(unit);
  std::vector<std::string> places;
  for (const auto& finding : all) places.push_back(finding.code + " " + std::to_string(finding.line));
  EXPECT_THAT(places, ElementsAre("bad-command 3", "kill-mode 2", "ignored-line 3"));
  EXPECT_EQ(all[1].file, "/etc/systemd/system/z.service.d/a.conf");
  EXPECT_EQ(all[1].key, "KillMode");
}

// incidents.md 1: the unit that could not start.
TEST(Lint, FindsTheLoopOfTheIncident) {
  const auto all = codes(
      "ExecStartPre=/bin/bash -c 'while true; do free=$(nvidia-smi --query-gpu=memory.free "
      "--format=csv,noheader,nounits | head -1); [ \"${free}\" -gt 90000 ] && break; sleep 5; done'\n"
      "ExecStart=/opt/llm/serve\n");
  EXPECT_THAT(all, ElementsAre("undefined-variable", "wait-in-shell"));
}

TEST(Lint, SurvivesHostileText) {
  for (const std::string& text : {std::string("ExecStart=") + std::string(20000, '$') + "\n",
                                  std::string("ExecStart=/bin/a ") + std::string(20000, '%') + "\n",
                                  std::string("ExecStart=/bin/sh -c '") + std::string(9000, '{') + "${\n",
                                  std::string("ExecStart=/a \"${\x1b]0;x\x07}\"\n"),
                                  std::string("ExecStart=/a ${") + std::string(5000, 'x') + "}\n"})
    for (const auto& finding : found(text)) EXPECT_LT(finding.reason.size(), 1000U);
}

}  // namespace
}  // namespace vacate
