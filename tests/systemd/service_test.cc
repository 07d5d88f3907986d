// SPDX-License-Identifier: Apache-2.0
// Incident 1 as it began, with a real systemd: a service whose ExecStartPre waits in a shell loop with a variable that
// systemd has eaten. Then the same service with the drop-in that vacate writes: started, stopped, killed, restarted,
// beside a tenant that keeps a GPU. The stories are told in the machine's first process and judged in the test's own.
//
// usage: service_tests TREE [GoogleTest's options]
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "container.h"
#include "lab/case/parse.h"
#include "lab/machine/files.h"
#include "lab/machine/machine.h"

namespace lab {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr unsigned kGpus = 2;
constexpr unsigned kServerMib = 96619;  // of gpu-server's workers
constexpr unsigned kRestarts = 10;
constexpr const char* kMachine = "title = \"services\"\nmachine = { gpus = 2, baseline = 0 }\n";

std::string tree;  // NOLINT: the argument of the program

std::string beside_the_test(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

/// As the incident's unit was: `${free}` is for systemd, which knows no such variable, so the shell reads `[ "" -lt 100
/// ]` and goes on for ever.
constexpr const char* kLoop = R"([Unit]
Description=model server behind a loop
[Service]
ExecStartPre=/bin/sh -c 'until free=0; [ "${free}" -lt 100 ] 2>/dev/null; do sleep 1; done'
ExecStart=/usr/local/bin/gpu-server 2
)";

constexpr const char* kServer = R"([Unit]
Description=model server
StartLimitIntervalSec=1min
StartLimitBurst=30
[Service]
ExecStart=/usr/local/bin/gpu-server 2
Restart=on-failure
RestartSec=100ms
)";

constexpr const char* kTenant = R"([Unit]
Description=somebody else's work
[Service]
ExecStart=/usr/local/bin/gpu-server 2
)";

constexpr const char* kDynamic = R"([Unit]
Description=model server of an account that is there while it runs
[Service]
ExecStart=/usr/local/bin/gpu-server 2
DynamicUser=yes
)";

/// The commands of the README's section "A systemd service", without sudo, which a minimal system lacks, and comments.
std::vector<std::string> commands_of_readme() {
  const std::string text = read_file(README);
  const auto begin = text.find("\n## A systemd service\n");
  if (begin == std::string::npos) return {};
  const std::string section = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  std::vector<std::string> commands;
  bool is_code = false;
  for (std::size_t at = 0; at < section.size();) {
    const auto end = std::min(section.find('\n', at), section.size());
    std::string line = section.substr(at, end - at);
    at = end + 1;
    if (line.rfind("```", 0) == 0) {
      is_code = !is_code;
    } else if (is_code) {
      line.resize(std::min(line.find("  "), line.size()));
      commands.push_back(line.rfind("sudo ", 0) == 0 ? line.substr(5) : line);
    }
  }
  return commands;
}

/// The machine has vacate in that place already.
constexpr const char* kCopy = "cp build/bin/vacate /usr/local/bin/";

/// Empty: a container can be booted from it.
std::string what_is_wrong_with(const std::filesystem::path& folder) {
  std::error_code error;
  const auto real = std::filesystem::canonical(folder, error);
  if (error) return error.message() + "; tests/systemd/make_tree makes it";
  for (const char* own : {"/tmp", "/run", "/var", "/dev", "/mnt"}) {
    if ((real.string() + "/").rfind(std::string(own) + "/", 0) == 0)
      return fmt::format("a machine of the lab has {} of its own, so this tree cannot be seen there: make it elsewhere",
                         own);
  }
  if (access((real / "usr/lib/systemd/systemd").c_str(), X_OK) != 0)
    return "no systemd in it; tests/systemd/make_tree makes a tree with one";
  return {};
}

class Story {
 public:
  Story(Container& container, std::vector<std::string> readme) : container_(container), readme_(std::move(readme)) {}

  json tell() {
    json found;
    found["loop"] = the_loop();
    found["readme"] = as_in_readme();
    found["dropin"] =
        container_.run_as_service({"vacate", "unit", "dropin", "llm.service", "--gpu", "0,1", "--install"});
    found["written"] = container_.run({"cat", "/etc/systemd/system/llm.service.d/vacate.conf"});
    found["lint"] = container_.run_as_service({"vacate", "unit", "lint", "llm.service"});
    found["verify"] = container_.run({"systemd-analyze", "verify", "llm.service"});
    found["stopped"] = start_and_stop();
    found["killed"] = start_and_kill();
    found["restarts"] = restart_often();
    found["swept"] = sweep_after_stop();
    found["dynamic"] = sweep_dynamic_user();
    found["waited"] = wait_for_tenant();
    found["log"] = container_.run_as_service({"vacate", "log", "--json"});
    found["journal"] = container_.run({"journalctl", "--no-pager", "-t", "vacate", "-o", "short-monotonic"});
    found["poweroff"] = container_.power_off();
    return found;
  }

 private:
  /// The loop hangs although both GPUs are free; systemctl stop leaves the unit failed, as then.
  json the_loop() {
    json found;
    found["lint"] = container_.run_as_service({"vacate", "unit", "lint", "loop.service", "--json"});
    container_.run({"systemctl", "start", "--no-block", "loop.service"});
    found["started"] = container_.wait_for("loop.service", "SubState", "start-pre");
    usleep(3'000'000);  // a start on free GPUs is done by then; there is no event to wait for: it hangs
    found["later"] = container_.property("loop.service", "SubState");
    found["used"] = container_.wait_for_use(0);
    container_.run({"systemctl", "stop", "loop.service"});
    found["stopped"] = container_.property("loop.service", "ActiveState");
    return found;
  }

  /// Each as a service of its own, as whoever is logged in on the container would: with its capabilities, not those of
  /// the machine around it.
  json as_in_readme() {
    json found = json::array();
    for (const auto& command : readme_) {
      json answer = command == kCopy ? json{{"exit", 0}} : json(container_.run_as_service({"/bin/sh", "-c", command}));
      answer["command"] = command;
      found.push_back(std::move(answer));
    }
    container_.run({"systemctl", "stop", "llm.service"});
    container_.wait_for_use(0);
    return found;
  }

  json start_and_stop() {
    json found;
    found["start"] = container_.run({"systemctl", "start", "llm.service"});
    found["used"] = container_.wait_for_use(kServerMib);
    found["main"] = container_.property("llm.service", "MainPID");
    found["status"] = container_.run_as_service({"vacate", "status", "--json"});
    found["all"] = container_.run_as_service({"vacate", "free", "--all", "--dry-run", "--json"});
    found["stop"] = container_.run({"systemctl", "stop", "llm.service"});
    found["used_after"] = container_.wait_for_use(0);
    found["state"] = container_.property("llm.service", "ActiveState");
    found["processes"] = processes();
    return found;
  }

  /// KILL to the main process alone: the workers stay until systemd and the drop-in have ended them, and only then the
  /// next server starts.
  json start_and_kill() {
    json found;
    found["start"] = container_.run({"systemctl", "start", "llm.service"});
    found["used"] = container_.wait_for_use(kServerMib);
    const std::string before = container_.property("llm.service", "MainPID");
    found["kill"] = container_.run({"systemctl", "kill", "--kill-whom=main", "--signal=KILL", "llm.service"});
    found["restarted"] = container_.wait_for("llm.service", "NRestarts", "1");
    found["active"] = container_.wait_for("llm.service", "SubState", "running");
    found["used_after"] = container_.wait_for_use(kServerMib);
    found["is_new"] = container_.property("llm.service", "MainPID") != before;
    found["workers"] = workers();
    container_.run({"systemctl", "stop", "llm.service"});
    found["used_at_end"] = container_.wait_for_use(0);
    return found;
  }

  /// Where systemd itself leaves the workers alone, the drop-in's clean-up ends them, and that is on record.
  json sweep_after_stop() {
    json found;
    override_unit("KillMode=process\\nRestart=no");
    found["start"] = container_.run({"systemctl", "start", "llm.service"});
    found["used"] = container_.wait_for_use(kServerMib);
    container_.run({"systemctl", "kill", "--kill-whom=main", "--signal=KILL", "llm.service"});
    found["state"] = container_.wait_for("llm.service", "ActiveState", "failed");
    found["used_after"] = container_.wait_for_use(0);
    found["processes"] = processes();
    found["log"] = container_.run_as_service({"vacate", "log", "--json"});
    found["journal"] = container_.run({"journalctl", "--no-pager", "-u", "llm.service", "-o", "short-monotonic"});
    container_.run({"systemctl", "reset-failed", "llm.service"});
    return found;
  }

  /// The same of a service whose account nobody knows before it runs: the drop-in names it, and the clean-up finds it.
  json sweep_dynamic_user() {
    json found;
    found["dropin"] =
        container_.run_as_service({"vacate", "unit", "dropin", "dyn.service", "--gpu", "0,1", "--install"});
    found["written"] = container_.run({"cat", "/etc/systemd/system/dyn.service.d/vacate.conf"});
    found["lint"] = container_.run_as_service({"vacate", "unit", "lint", "dyn.service"});
    override_unit("KillMode=process\\nRestart=no", "dyn.service");
    found["start"] = container_.run({"systemctl", "start", "dyn.service"});
    found["used"] = container_.wait_for_use(kServerMib);
    found["links"] = container_.run({"ls", "-l", "/run/systemd/dynamic-uid"});
    container_.run({"systemctl", "kill", "--kill-whom=main", "--signal=KILL", "dyn.service"});
    found["state"] = container_.wait_for("dyn.service", "ActiveState", "failed");
    found["used_after"] = container_.wait_for_use(0);
    found["processes"] = processes();
    found["journal"] = container_.run({"journalctl", "--no-pager", "-u", "dyn.service", "-o", "short-monotonic"});
    return found;
  }

  /// Lines of a [Service] section, joined by \\n, on top of everything else.
  void override_unit(const std::string& lines, const std::string& unit = "llm.service") {
    container_.run({"sh", "-c", "printf '[Service]\\n" + lines + "\\n' >/etc/systemd/system/" + unit + ".d/zz.conf"});
    container_.run({"systemctl", "daemon-reload"});
  }

  json restart_often() {
    json found = json::array();
    container_.run({"systemctl", "start", "llm.service"});
    for (unsigned turn = 0; turn < kRestarts; ++turn) {
      const json restart = container_.run({"systemctl", "restart", "llm.service"});
      const auto used = container_.wait_for_use(kServerMib);
      found.push_back({{"restart", restart}, {"used", used}, {"workers", workers()}});
    }
    container_.run({"systemctl", "stop", "llm.service"});
    found.push_back({{"used", container_.wait_for_use(0)}});
    return found;
  }

  /// The start waits for a tenant for longer than TimeoutStartSec, says so in its status, and goes on once he is gone.
  json wait_for_tenant() {
    json found;
    // Shorter than the wait: what is waited for has to come through EXTEND_TIMEOUT_USEC.
    override_unit("TimeoutStartSec=4s");
    found["tenant"] = container_.run({"systemctl", "start", "tenant.service"});
    found["used"] = container_.wait_for_use(kServerMib);
    container_.run({"systemctl", "start", "--no-block", "llm.service"});
    found["started"] = container_.wait_for("llm.service", "SubState", "start-pre");
    found["timeout"] = container_.property("llm.service", "TimeoutStartUSec");
    usleep(8'000'000);  // twice the timeout; nothing happens that could be waited for
    found["later"] = container_.property("llm.service", "SubState");
    found["status"] = container_.run({"systemctl", "status", "--no-pager", "llm.service"});
    found["tenant_later"] = container_.property("tenant.service", "ActiveState");
    found["stop"] = container_.run({"systemctl", "stop", "tenant.service"});
    found["running"] = container_.wait_for("llm.service", "SubState", "running");
    found["used_after"] = container_.wait_for_use(kServerMib);
    found["workers"] = workers();
    container_.run({"systemctl", "stop", "llm.service"});
    found["used_at_end"] = container_.wait_for_use(0);
    return found;
  }

  std::string processes() {
    return container_.run(
        {"sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -e [V]LLM -e [a]pi_server || true"})["out"];
  }
  std::size_t workers() {
    const std::string titles = processes();
    std::size_t count = 0;
    for (auto at = titles.find("Worker_TP"); at != std::string::npos; at = titles.find("Worker_TP", at + 1)) ++count;
    return count;
  }

  Container& container_;
  std::vector<std::string> readme_;
};

json tell(Machine& machine, const std::vector<std::string>& readme) {
  const auto actors = machine.start_actors();
  if (!actors) return {{"ready", actors.error().message}};
  auto container = Container::prepare(machine, tree, beside_the_test("gpu-server"), kGpus);
  if (!container) return {{"ready", container.error().message}};
  const std::string units = container->root() + "/etc/systemd/system/";
  for (const auto& [name, text] : {std::pair{"loop.service", kLoop},
                                   {"llm.service", kServer},
                                   {"tenant.service", kTenant},
                                   {"dyn.service", kDynamic}}) {
    if (const auto written = write_file(units + name, text); !written) return {{"ready", written.error().message}};
  }
  if (const auto booted = container->boot(); !booted)
    return {{"ready", booted.error().message}, {"console", container->power_off()}};
  json found = Story(*container, readme).tell();
  found["ready"] = "";
  return found;
}

class ServiceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto scenario = parse_case(kMachine, "service_test");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    const vacate::UniqueFd told(memfd_create("told", MFD_CLOEXEC));
    const auto readme = commands_of_readme();
    const auto body = [&](Machine& machine) {
      const std::string text = tell(machine, readme).dump(-1, ' ', true, json::error_handler_t::replace);
      return write(told.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
    };
    const std::string library =
        std::filesystem::path(beside_the_test("")).parent_path().parent_path() / "lib/libnvidia-ml.so.1";
    const auto status =
        run_in_machine(*scenario, {beside_the_test("vacate"), beside_the_test("vacate-lab-actor"), library}, body);
    ASSERT_TRUE(status.has_value()) << status.error().message;
    found_ = json::parse(read_file(fmt::format("/proc/self/fd/{}", told.get())), nullptr, false);
  }
  void SetUp() override { ASSERT_TRUE(found_.is_object() && found_.value("ready", "?").empty()) << found_.dump(2); }

  static json all(unsigned mib) { return std::vector<std::uint64_t>(kGpus, mib); }

  static inline json found_;  // NOLINT: told once for all tests
};

TEST_F(ServiceTest, TheIncidentsUnitIsFoundAndHangsAsThen) {
  const json& loop = found_["loop"];
  EXPECT_EQ(loop["lint"]["exit"], 1) << loop.dump(2);
  EXPECT_THAT(loop["lint"]["out"].get<std::string>(), HasSubstr("${free}"));
  EXPECT_EQ(loop["started"], "start-pre");
  EXPECT_EQ(loop["later"], "start-pre") << "it did not hang: the unit is not that of the incident";
  EXPECT_EQ(loop["used"], all(0));
  EXPECT_EQ(loop["stopped"], "failed");
}

TEST_F(ServiceTest, TheCommandsOfTheReadmeWorkAsWritten) {
  const json& told = found_["readme"];
  std::vector<std::string> commands;
  for (const auto& each : told) {
    EXPECT_EQ(each["exit"], 0) << each.dump(2);
    commands.push_back(each["command"]);
  }
  EXPECT_THAT(commands, testing::ElementsAre(kCopy, "vacate unit lint llm",
                                             "/usr/local/bin/vacate unit dropin llm --gpu 0,1 --install",
                                             "systemctl restart llm", "systemctl status llm"));
  ASSERT_EQ(told.size(), 5U);
  EXPECT_THAT(told[4]["out"].get<std::string>(),
              AllOf(HasSubstr("active (running)"), HasSubstr("free when the wait ended")));
}

TEST_F(ServiceTest, TheDropInIsInstalledAndPasses) {
  EXPECT_EQ(found_["dropin"]["exit"], 0) << found_["dropin"].dump(2);
  EXPECT_EQ(found_["lint"]["exit"], 0) << found_["lint"].dump(2) << found_["written"]["out"].get<std::string>();
  EXPECT_EQ(found_["verify"]["exit"], 0) << found_["verify"].dump(2);
  EXPECT_EQ(found_["verify"]["err"], "");
}

TEST_F(ServiceTest, AStopLeavesNobody) {
  const json& story = found_["stopped"];
  EXPECT_EQ(story["start"]["exit"], 0) << story.dump(2) << found_["journal"]["out"].get<std::string>();
  EXPECT_EQ(story["used"], all(kServerMib));
  EXPECT_EQ(story["stop"]["exit"], 0) << story.dump(2);
  EXPECT_EQ(story["used_after"], all(0));
  EXPECT_EQ(story["processes"], "");
}

/// The container's own manager names its processes by the numbers that vacate sees there, so that a service that runs
/// is told from one that is over, and is not signalled where it would start again.
TEST_F(ServiceTest, ARunningServiceIsLiveAndLeftToItsManager) {
  const json& story = found_["stopped"];
  const json status = json::parse(story["status"]["out"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(status.is_object()) << story["status"].dump(2);
  ASSERT_FALSE(status["holders"].empty());
  for (const auto& holder : status["holders"]) {
    EXPECT_EQ(holder["standing"], "live") << holder.dump(2);
    EXPECT_EQ(holder["origin"]["unit"], "llm.service") << holder.dump(2);
    EXPECT_EQ(holder["supervisor"]["kind"], "unit") << holder.dump(2);
    EXPECT_EQ(fmt::format("{}", holder["supervisor"]["pid"].get<int>()), story["main"]) << holder.dump(2);
  }
  const json all = json::parse(story["all"]["out"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(all.is_object()) << story["all"].dump(2);
  EXPECT_EQ(story["all"]["exit"], 3) << all.dump(2);
  ASSERT_FALSE(all["plan"]["steps"].empty());
  for (const auto& step : all["plan"]["steps"]) {
    EXPECT_EQ(step["action"], "refuse") << step.dump(2);
    EXPECT_EQ(step["rule"], "restarting-unit") << step.dump(2);
  }
}

TEST_F(ServiceTest, AKilledServerIsStartedAnewOnFreeGpus) {
  const json& story = found_["killed"];
  EXPECT_EQ(story["used"], all(kServerMib)) << story.dump(2);
  EXPECT_EQ(story["restarted"], "1");
  EXPECT_EQ(story["active"], "running");
  EXPECT_EQ(story["is_new"], true);
  EXPECT_EQ(story["used_after"], all(kServerMib)) << "both servers would be twice that";
  EXPECT_EQ(story["workers"], kGpus);
  EXPECT_EQ(story["used_at_end"], all(0));
}

TEST_F(ServiceTest, TenRestartsEachFindFreeGpus) {
  const json& turns = found_["restarts"];
  ASSERT_EQ(turns.size(), kRestarts + 1);
  for (unsigned turn = 0; turn < kRestarts; ++turn) {
    EXPECT_EQ(turns[turn]["restart"]["exit"], 0) << turns[turn].dump(2);
    EXPECT_EQ(turns[turn]["used"], all(kServerMib)) << "turn " << turn;
    EXPECT_EQ(turns[turn]["workers"], kGpus) << "turn " << turn;
  }
  EXPECT_EQ(turns[kRestarts]["used"], all(0));
}

TEST_F(ServiceTest, WhatSystemdLeavesTheDropInSweepsAndRecords) {
  const json& story = found_["swept"];
  EXPECT_EQ(story["used"], all(kServerMib)) << story.dump(2);
  EXPECT_EQ(story["state"], "failed");
  EXPECT_EQ(story["used_after"], all(0)) << story["journal"]["out"].get<std::string>();
  EXPECT_EQ(story["processes"], "");
  const json log = json::parse(story["log"]["out"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(log.is_object()) << story["log"].dump(2);
  EXPECT_GE(log["actions"].size(), kGpus) << log.dump(2);
}

TEST_F(ServiceTest, TheSweepFindsAnAccountThatIsThereOnlyWhileItsServiceRuns) {
  const json& story = found_["dynamic"];
  const auto journal = story["journal"]["out"].get<std::string>();
  EXPECT_THAT(story["written"]["out"].get<std::string>(), HasSubstr(" --user dyn,root --all ")) << story.dump(2);
  EXPECT_EQ(story["lint"]["exit"], 0) << story["lint"].dump(2);
  EXPECT_EQ(story["used"], all(kServerMib)) << story["links"].dump(2) << journal;
  EXPECT_EQ(story["state"], "failed");
  EXPECT_EQ(story["used_after"], all(0)) << story["links"].dump(2) << journal;
  EXPECT_EQ(story["processes"], "");
  EXPECT_THAT(journal, AllOf(HasSubstr("released:"), Not(HasSubstr("no user is")))) << story["links"].dump(2);
}

TEST_F(ServiceTest, AStartWaitsForATenantLongerThanItsTimeout) {
  const json& story = found_["waited"];
  EXPECT_EQ(story["used"], all(kServerMib)) << story.dump(2);
  EXPECT_EQ(story["timeout"], "4s");
  EXPECT_EQ(story["later"], "start-pre") << story.dump(2) << found_["journal"]["out"].get<std::string>();
  EXPECT_THAT(story["status"]["out"].get<std::string>(), AllOf(HasSubstr("Status:"), HasSubstr("VLLM::Worker")));
  EXPECT_EQ(story["tenant_later"], "active") << "a live tenant is waited for, not ended";
  EXPECT_EQ(story["running"], "running");
  EXPECT_EQ(story["used_after"], all(kServerMib));
  EXPECT_EQ(story["used_at_end"], all(0));
}

TEST_F(ServiceTest, WhatWasDoneIsOnRecordAndTheContainerEnds) {
  EXPECT_EQ(found_["log"]["exit"], 0) << found_["log"].dump(2);
  const json log = json::parse(found_["log"]["out"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(log.is_object()) << found_["log"].dump(2);
  EXPECT_EQ(found_["poweroff"]["exit"], 0) << found_["poweroff"].dump(2);
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fputs("usage: service_tests TREE [GoogleTest's options]\n", stderr);
    return 2;
  }
  lab::tree = std::filesystem::absolute(argv[1]);
  if (const auto wrong = lab::what_is_wrong_with(lab::tree); !wrong.empty()) {
    std::fprintf(stderr, "service_tests: %s: %s\n", lab::tree.c_str(), wrong.c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
