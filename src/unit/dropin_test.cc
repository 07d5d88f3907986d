// SPDX-License-Identifier: Apache-2.0
#include "unit/dropin.h"

#include <gmock/gmock.h>

#include "unit/lint.h"

namespace vacate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

DropinRequest request(std::string_view name) {
  return {*parse_service_name(name), "/usr/bin/vacate", {"GPU-11", "GPU-22"}, "GPUs 0,1", std::chrono::minutes(5)};
}

UnitSettings service(const std::string& text) { return UnitSettings::parse({{"/etc/a", "[Service]\n" + text}}); }

std::string made(std::string_view name, const std::string& text) {
  const auto dropin = render_dropin(request(name), service(text));
  return dropin ? *dropin : "ERROR " + dropin.error().message;
}

TEST(Dropin, WaitsCleansUpAndSetsWhatThatNeeds) {
  const auto text = made("llm", "ExecStart=/opt/serve\n");
  EXPECT_THAT(text, StartsWith(kDropinMark));
  EXPECT_THAT(text, HasSubstr("\nExecStartPre=+/usr/bin/vacate wait --gpu GPU-11,GPU-22 --reap --timeout 5min\n"));
  EXPECT_THAT(text, HasSubstr("\nExecStopPost=+/usr/bin/vacate free --unit llm.service --all --yes --timeout 1min\n"));
  EXPECT_THAT(text, HasSubstr("\nTimeoutStartSec=6min\n"));
  EXPECT_THAT(text, HasSubstr("\nTimeoutStopSec=90s\n"));
  EXPECT_THAT(text, HasSubstr("\nNotifyAccess=exec\n"));
  EXPECT_THAT(text, HasSubstr("\nKillMode=mixed\n"));
}

TEST(Dropin, KeepsWhatIsGoodAlready) {
  const auto text = made("llm",
                         "ExecStart=/opt/serve\nTimeoutStartSec=30min\nTimeoutStopSec=5min\nNotifyAccess=all\n"
                         "KillMode=control-group\n");
  for (const auto* key : {"\nTimeoutStartSec", "\nTimeoutStopSec", "\nNotifyAccess", "\nKillMode"})
    EXPECT_THAT(text, Not(HasSubstr(key)));
  EXPECT_THAT(made("llm", "ExecStart=/a\nKillMode=process\n"), HasSubstr("\nKillMode=mixed\n"));
  EXPECT_THAT(made("llm", "ExecStart=/a\nTimeoutStopSec=10s\n"), HasSubstr("\nTimeoutStopSec=90s\n"));
  EXPECT_THAT(made("llm", ""), HasSubstr("\nTimeoutStartSec=6min\n"));  // a unit of which nothing is known
}

TEST(Dropin, NamesTheUserWhoseWorkIsEnded) {
  EXPECT_THAT(made("llm", "User=llm\nExecStart=/a\n"),
              HasSubstr(" free --unit llm.service --user llm,root --all --yes "));
  for (const std::string user : {"root", "0", "%i", "a b"})
    EXPECT_THAT(made("llm", "User=" + user + "\nExecStart=/a\n"), Not(HasSubstr("--user"))) << user;
  EXPECT_THAT(made("llm@1", "DynamicUser=yes\nExecStart=/a\n"), HasSubstr(" --user llm,root --all "));
  EXPECT_THAT(made("llm", "DynamicUser=yes\nUser=ml\nExecStart=/a\n"), HasSubstr(" --user ml,root --all "));
  for (const std::string unknown : {"User=%i\n", "DynamicUser=yes\nUser=%i\n"})
    EXPECT_THAT(made("llm", unknown + "ExecStart=/a\n"),
                HasSubstr("\n# Its user has no name that could be written here"));
}

TEST(Dropin, WaitsForEver) {
  auto asked = request("llm");
  asked.wait = {};
  const auto text = render_dropin(asked, service("ExecStart=/a\n"));
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr(" --timeout 0\n"));
  EXPECT_THAT(*text, HasSubstr("\nTimeoutStartSec=infinity\n"));
}

TEST(Dropin, HasNothingThatSystemdReplaces) {
  const auto text = made("a\\x2db@1", "ExecStart=/opt/serve\n");
  EXPECT_THAT(text, HasSubstr("--unit a\\\\x2db@1.service "));
  EXPECT_EQ(text.find_first_of("$%\""), std::string::npos);
}

TEST(Dropin, PassesOurOwnLint) {
  for (const std::string unit :
       {"ExecStart=/opt/serve\n", "Type=notify\nUser=llm\nExecStart=/opt/serve\nTimeoutStopSec=5\n",
        "DynamicUser=yes\nExecStart=/opt/serve\n", "Type=oneshot\nKillMode=none\nExecStart=/opt/train\n"}) {
    UnitToLint both;
    both.prefix = "llm";
    const auto kill_mode = unit.find("KillMode=none\n");
    const std::string own = kill_mode == std::string::npos ? unit : std::string(unit).erase(kill_mode, 14);
    both.settings = UnitSettings::parse({{"a", "[Service]\n" + own}, {"b", made("llm", unit)}});
    std::vector<std::string> wrong;
    for (const auto& finding : lint_unit(both))
      if (finding.severity != UnitSeverity::hint) wrong.push_back(finding.code);
    EXPECT_THAT(wrong, IsEmpty()) << unit;
  }
}

TEST(Dropin, RefusesWhatWouldNeedQuotes) {
  auto asked = request("llm");
  asked.program = "/opt/my tools/vacate";
  EXPECT_EQ(render_dropin(asked, service("")).error().code, ErrorCode::refused);
  for (const std::string word : {"0 1", "$(id)", "%n", "GPU-1;x", ""}) {
    asked = request("llm");
    asked.gpus = {word};
    EXPECT_EQ(render_dropin(asked, service("")).error().code, ErrorCode::malformed) << word;
  }
  EXPECT_EQ(render_dropin(request("llm@"), service("")).error().code, ErrorCode::malformed);
}

TEST(Dropin, IsOneLineARemark) {
  auto asked = request("llm");
  asked.gpus_remark = "x\n[Service]\nExecStart=/evil";
  const auto text = render_dropin(asked, service(""));
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, Not(HasSubstr("\nExecStart=/evil")));
}

}  // namespace
}  // namespace vacate
