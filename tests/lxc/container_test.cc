// SPDX-License-Identifier: Apache-2.0
// Incident 1 in a real container: Debian's lxc starts one on a machine of the lab, with the machine's device nodes and
// library bound in. A pattern kill ends the API server, its engine and eight workers stay with 96,619 MiB on each of
// eight GPUs. vacate, as it is shipped, is run in the container and on the machine around it. Nothing outside the
// machine is touched, and everything in it ends with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/unique_fd.h"
#include "lab/case/parse.h"
#include "lab/machine/files.h"
#include "lab/machine/machine.h"
#include "tests/gpu_server/gpu_server.h"

namespace lab {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using vacate::Deadline;

constexpr unsigned kGpus = 8;
constexpr const char* kName = "box";
constexpr const char* kLxcPath = "/var/lib/lxc";
constexpr const char* kServerProgram = "/usr/local/bin/gpu-server";
constexpr const char* kMachine = R"(
title = "incident 1 in a container"
machine = { gpus = 8, baseline = 0 }
[[actor]]
name = "neighbour"
holds = [{ gpu = 0, how = "files" }]
)";

/// What each step of the story found. It is told in the machine's first process and judged in the test's own.
using Findings = json;

std::string beside_the_test(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}
std::string library() {
  return std::filesystem::path(beside_the_test("")).parent_path().parent_path() / "lib/libnvidia-ml.so.1";
}

std::string lxc_config() {
  std::string config = fmt::format(
      "lxc.uts.name = {0}\nlxc.net.0.type = none\nlxc.rootfs.path = dir:/\nlxc.mount.auto = proc:rw\n"
      "lxc.init.cmd = {1} --be-container-init\nlxc.apparmor.profile = unconfined\n",
      kName, kServerProgram);
  std::vector<std::string> shown = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                    "/usr/local/bin/vacate"};
  for (unsigned gpu = 0; gpu < kGpus; ++gpu) shown.push_back(fmt::format("/dev/nvidia{}", gpu));
  for (const std::string folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    const std::string path = folder + "/libnvidia-ml.so.1";
    if (access(path.c_str(), F_OK) == 0) shown.push_back(path);
  }
  for (const std::string& path : shown)
    config += fmt::format("lxc.mount.entry = {} {} none bind,create=file 0 0\n", path, path.substr(1));
  return config + "lxc.mount.entry = /proc/driver proc/driver none bind 0 0\n";
}

/// The story's means: commands on the machine and in the container.
class Story {
 public:
  explicit Story(Machine& machine) : machine_(machine) {}

  Findings run(std::vector<std::string> argv) {
    CommandSpec spec;
    spec.argv = std::move(argv);
    const auto result = machine_.run(spec, Deadline::after(std::chrono::seconds(60)));
    if (!result) return {{"exit", -1}, {"out", ""}, {"err", result.error().message}, {"seconds", 0.0}};
    return {{"exit", result->exit_code}, {"out", result->out}, {"err", result->err}, {"seconds", result->seconds}};
  }
  Findings in_container(const std::vector<std::string>& argv) {
    std::vector<std::string> words = {"lxc-attach", "-P", kLxcPath, "-n", kName, "--clear-env", "--"};
    words.insert(words.end(), argv.begin(), argv.end());
    return run(std::move(words));
  }

  /// What the driver says when every GPU has `mib` in use, or when it was given up.
  json wait_for_use(std::uint64_t mib) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    for (;;) {
      const auto used = machine_.used_mib();
      if (!used) return used.error().message;
      if (*used == std::vector<std::uint64_t>(kGpus, mib) || deadline.passed()) return *used;
      usleep(20'000);
    }
  }

  Findings kill_server() { return in_container({"sh", "-c", fmt::format("kill -KILL $(cat {})", kServerPidFile)}); }

 private:
  Machine& machine_;
};

Findings tell(Machine& machine) {
  Findings found;
  Story story(machine);
  CommandSpec lxc;
  lxc.argv = {"lxc-start", "-P", kLxcPath, "-n", kName, "-F", "-l", "INFO", "-o", "/run/lxc.log"};
  const auto container = machine.start_command(lxc);
  found["started"] = container ? "" : container.error().message;
  if (!container) return found;
  found["used_before"] = story.wait_for_use(kWorkerMib);
  found["log"] = read_file("/run/lxc.log");
  found["kill"] = story.kill_server();
  found["inside_status"] = story.in_container({"vacate", "status", "--json"});
  found["inside_free"] = story.in_container({"vacate", "free", "--yes", "--json"});
  found["used_after_inside"] = story.wait_for_use(0);
  found["inside_again"] = story.in_container({"vacate", "free", "--yes", "--json"});

  found["restart"] = story.in_container({"kill", "-USR1", "1"});
  found["used_before_outside"] = story.wait_for_use(kWorkerMib);
  found["kill_again"] = story.kill_server();
  found["outside_status"] = story.run({"vacate", "status", "--json"});
  found["outside_free"] = story.run({"vacate", "free", "--yes", "--json"});
  found["used_after_outside"] = story.wait_for_use(0);
  found["state"] = story.run({"lxc-info", "-P", kLxcPath, "-n", kName, "-s", "-H"});
  const auto neighbour = machine.actor("neighbour");
  found["neighbour"] = neighbour && !neighbour->exited && neighbour->signal_count == 0;

  found["stop"] = story.run({"lxc-stop", "-P", kLxcPath, "-n", kName, "-k"});
  const auto ended = machine.finish_command(*container, Deadline::after(std::chrono::seconds(20)));
  found["ended"] = ended && !ended->timed_out;
  found["left"] = story.run({"sh", "-c", "cat /proc/[0-9]*/comm | grep -E 'lxc|VLLM|gpu-server' || true"});
  return found;
}

class ContainerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0 || access("/usr/bin/lxc-start", X_OK) != 0) return;
    const auto scenario = parse_case(kMachine, "container_test");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().message;
    const std::string self = read_file("/proc/self/exe");
    const vacate::UniqueFd told(memfd_create("told", MFD_CLOEXEC));
    const auto body = [&](Machine& machine) {
      const auto started = machine.start_actors();
      const auto placed = write_file(kServerProgram, self, 0755);
      const auto configured = write_file(fmt::format("{}/{}/config", kLxcPath, kName), lxc_config());
      Findings found =
          started && placed && configured ? tell(machine) : Findings{{"started", "the machine is not ready"}};
      const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
      return write(told.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
    };
    const auto status =
        run_in_machine(*scenario, {beside_the_test("vacate"), beside_the_test("vacate-lab-actor"), library()}, body);
    ASSERT_TRUE(status.has_value()) << status.error().message;
    found_ = json::parse(read_file(fmt::format("/proc/self/fd/{}", told.get())), nullptr, false);
  }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    if (access("/usr/bin/lxc-start", X_OK) != 0) GTEST_SKIP() << "needs lxc-start (Debian's package lxc)";
    ASSERT_TRUE(found_.is_object() && found_.value("started", "?").empty()) << found_.dump(2);
    ASSERT_EQ(found_["used_before"], json(std::vector<std::uint64_t>(kGpus, kWorkerMib)))
        << found_["log"].get<std::string>();
  }

  /// What a command printed, as JSON; its exit code and words where that is none.
  static json printed(const std::string& step) {
    const json parsed = json::parse(found_[step]["out"].get<std::string>(), nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << found_[step].dump(2);
    return parsed.is_object() ? parsed : json::object();
  }
  static std::vector<std::string> blind_spots(const json& answer) {
    std::vector<std::string> codes;
    for (const auto& spot : answer["visibility"]["blind_spots"]) codes.push_back(spot["code"]);
    return codes;
  }
  static std::vector<std::string> titles_with_memory(const json& status) {
    std::vector<std::string> titles;
    for (const auto& holder : status["holders"]) {
      if (holder["role"] == "context") titles.push_back(holder["title"]);
    }
    return titles;
  }
  static std::size_t signalled(const json& answer) {
    std::size_t signals = 0;
    for (const auto& step : answer["plan"]["steps"]) signals += step["action"] == "signal" ? 1 : 0;
    return signals;
  }

  static inline json found_;  // NOLINT: told once for all tests
};

constexpr std::size_t kEngineAndWorkers = kGpus + 1;

TEST_F(ContainerTest, InsideEveryWorkerIsSeenAndWhatIsNotSeenIsSaid) {
  EXPECT_EQ(found_["kill"]["exit"], 0) << found_["kill"].dump(2);
  EXPECT_EQ(found_["inside_status"]["exit"], 0) << found_["inside_status"].dump(2);
  const json status = printed("inside_status");
  EXPECT_EQ(status["driver"]["state"], "ok");
  EXPECT_THAT(titles_with_memory(status), SizeIs(kGpus));
  EXPECT_THAT(titles_with_memory(status), Each(HasSubstr("VLLM::Worker_TP")));
  for (const auto& holder : status["holders"]) EXPECT_EQ(holder["standing"], "leftover") << holder.dump(2);
  EXPECT_EQ(status["visibility"]["complete"], false);
  EXPECT_THAT(blind_spots(status), Contains("foreign-pid-namespace"));
}

TEST_F(ContainerTest, InsideExactlyTheWorkersAndTheirEngineEnd) {
  const json answer = printed("inside_free");
  RecordProperty("seconds", fmt::format("{:.3f}", found_["inside_free"]["seconds"].get<double>()));
  EXPECT_EQ(signalled(answer), kEngineAndWorkers) << answer.dump(2);
  for (const auto& result : answer["results"]) EXPECT_EQ(result["result"], "gone") << result.dump(2);
  EXPECT_EQ(found_["used_after_inside"], json(std::vector<std::uint64_t>(kGpus, 0)));
  // Seen to come back to its baseline: the answer does not depend on what could not be seen.
  EXPECT_EQ(answer["verdict"], "released") << answer.dump(2);
  EXPECT_EQ(found_["inside_free"]["exit"], 0);
  EXPECT_EQ(answer["visibility"]["complete"], false);
  EXPECT_THAT(blind_spots(answer), Contains("foreign-pid-namespace"));
  for (const auto& gpu : answer["gpus"]) EXPECT_EQ(gpu["verdict"], "released") << gpu.dump(2);
}

TEST_F(ContainerTest, InsideASecondTimeThereIsNothingToDo) {
  const json answer = printed("inside_again");
  EXPECT_EQ(signalled(answer), 0U) << answer.dump(2);
  EXPECT_EQ(answer["verdict"], "nothing-to-do");
  EXPECT_EQ(found_["inside_again"]["exit"], 0);
}

TEST_F(ContainerTest, FromOutsideTheContainerIsNamed) {
  ASSERT_EQ(found_["used_before_outside"], json(std::vector<std::uint64_t>(kGpus, kWorkerMib)));
  const json status = printed("outside_status");
  EXPECT_THAT(titles_with_memory(status), SizeIs(kGpus));
  EXPECT_EQ(status["visibility"]["complete"], true) << status["visibility"].dump(2);
  for (const auto& holder : status["holders"]) {
    if (holder["role"] != "context") continue;
    EXPECT_EQ(holder["origin"]["container"], kName) << holder.dump(2);
    EXPECT_EQ(holder["standing"], "leftover") << holder.dump(2);
  }
}

TEST_F(ContainerTest, FromOutsideExactlyTheWorkersAndTheirEngineEnd) {
  const json answer = printed("outside_free");
  RecordProperty("seconds", fmt::format("{:.3f}", found_["outside_free"]["seconds"].get<double>()));
  EXPECT_EQ(signalled(answer), kEngineAndWorkers) << answer.dump(2);
  EXPECT_EQ(answer["verdict"], "released") << answer.dump(2);
  EXPECT_EQ(found_["outside_free"]["exit"], 0);
  EXPECT_EQ(found_["used_after_outside"], json(std::vector<std::uint64_t>(kGpus, 0)));
}

TEST_F(ContainerTest, TheContainerAndItsNeighbourStayUntilTheyAreStopped) {
  EXPECT_THAT(found_["state"]["out"].get<std::string>(), HasSubstr("RUNNING"));
  EXPECT_EQ(found_["neighbour"], true);
  EXPECT_EQ(found_["stop"]["exit"], 0) << found_["stop"].dump(2);
  EXPECT_EQ(found_["ended"], true);
  EXPECT_EQ(found_["left"]["out"], "");
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--be-container-init") lab::be_container_init(lab::kGpus);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
