// SPDX-License-Identifier: Apache-2.0
#include "container.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "lab/machine/files.h"

namespace lab {
namespace {

using std::chrono::seconds;
using vacate::Deadline;
using vacate::Error;
using vacate::ErrorCode;

constexpr const char* kFolder = "/var/lib/container";
constexpr useconds_t kPace = 50'000;  // the container has no descriptor that says when a property changed

std::string library() {
  for (const std::string folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    const std::string path = folder + "/libnvidia-ml.so.1";
    if (access(path.c_str(), F_OK) == 0) return path;
  }
  return {};
}

/// The container's pid 1 as the machine numbers it: systemd-nspawn's only child of that name. 0: none yet.
pid_t find_leader() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string stat = read_file(entry.path() / "stat");
    const auto end = stat.rfind(')');
    if (end == std::string::npos || read_file(entry.path() / "comm") != "systemd\n") continue;
    const auto parent = std::strtol(stat.c_str() + end + 4, nullptr, 10);
    if (read_file(fmt::format("/proc/{}/comm", parent)) == "systemd-nspawn\n")
      return static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
  }
  return 0;
}

}  // namespace

vacate::Result<Container> Container::prepare(Machine& machine, const std::string& tree, const std::string& server,
                                             unsigned gpus) {
  for (const std::string folder : {"", "/upper", "/work", "/root"}) {
    if (mkdir((kFolder + folder).c_str(), 0755) != 0 && errno != EEXIST)
      return Error{ErrorCode::io, fmt::format("{}{}: {}", kFolder, folder, std::strerror(errno))};
  }
  const std::string root = std::string(kFolder) + "/root";
  const std::string layers = fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work", tree, kFolder, kFolder);
  if (mount("overlay", root.c_str(), "overlay", 0, layers.c_str()) != 0)
    return Error{ErrorCode::io, fmt::format("overlay of {}: {}", tree, std::strerror(errno))};
  if (auto placed = write_file(root + "/usr/local/bin/gpu-server", read_file(server), 0755); !placed)
    return placed.error();
  return Container(machine, root, gpus);
}

vacate::Result<void> Container::boot() {
  CommandSpec spec;
  spec.argv = {"systemd-nspawn", "--directory=" + root_, "--boot",  "--register=no",
               "--keep-unit",    "--private-network",    "--quiet", "--console=pipe"};
  std::vector<std::string> shown = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/proc/driver"};
  for (unsigned gpu = 0; gpu < gpus_; ++gpu) shown.push_back(fmt::format("/dev/nvidia{}", gpu));
  for (const std::string& path : shown) spec.argv.push_back("--bind=" + path);
  for (const std::string& path : {std::string("/usr/local/bin/vacate"), library()})
    spec.argv.push_back("--bind-ro=" + path);
  const auto started = machine_->start_command(spec);
  if (!started) return started.error();
  id_ = *started;
  const Deadline deadline = Deadline::after(seconds(60));
  while (!deadline.passed()) {
    if (leader_ == 0) leader_ = find_leader();
    const bool is_up = leader_ != 0 && run({"systemctl", "is-active", "multi-user.target"})["out"] == "active\n";
    if (is_up) return {};
    usleep(kPace);
  }
  return Error{ErrorCode::timed_out, "the container did not start within a minute"};
}

Finding Container::finish(const std::vector<std::string>& argv) {
  CommandSpec spec;
  spec.argv = argv;
  const auto result = machine_->run(spec, Deadline::after(seconds(90)));
  if (!result) return {{"exit", -1}, {"out", ""}, {"err", result.error().message}, {"seconds", 0.0}};
  return {{"exit", result->exit_code}, {"out", result->out}, {"err", result->err}, {"seconds", result->seconds}};
}

Finding Container::run(const std::vector<std::string>& argv) {
  std::vector<std::string> words = {"nsenter", "-t", std::to_string(leader_), "-m", "-u", "-i", "-n", "-p", "-C", "--"};
  words.insert(words.end(), argv.begin(), argv.end());
  return finish(words);
}

Finding Container::run_as_service(const std::vector<std::string>& argv) {
  std::vector<std::string> words = {"systemd-run", "--quiet", "--wait", "--pipe", "--collect", "--"};
  words.insert(words.end(), argv.begin(), argv.end());
  return run(words);
}

std::string Container::property(const std::string& unit, const std::string& name) {
  std::string value = run({"systemctl", "show", "--value", "-p", name, unit})["out"];
  if (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

std::string Container::wait_for(const std::string& unit, const std::string& name, const std::string& value) {
  const Deadline deadline = Deadline::after(seconds(30));
  for (;;) {
    std::string now = property(unit, name);
    if (now == value || deadline.passed()) return now;
    usleep(kPace);
  }
}

std::vector<std::uint64_t> Container::wait_for_use(std::uint64_t mib) {
  const Deadline deadline = Deadline::after(seconds(30));
  for (;;) {
    const auto used = machine_->used_mib();
    if (!used) return {};
    if (*used == std::vector<std::uint64_t>(gpus_, mib) || deadline.passed()) return *used;
    usleep(kPace);
  }
}

Finding Container::power_off() {
  (void)run({"systemctl", "poweroff"});
  const auto ended = machine_->finish_command(id_, Deadline::after(seconds(60)));
  if (!ended) return {{"exit", -1}, {"out", ""}, {"err", ended.error().message}};
  return {{"exit", ended->timed_out ? -1 : ended->exit_code}, {"out", ended->out}, {"err", ended->err}};
}

}  // namespace lab
